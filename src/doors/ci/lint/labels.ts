/** Labels that runners usually have: those of the hosted ones that workflows name, and those that every runner gets. */

const hosted = [
  "ubuntu-latest",
  "ubuntu-24.04",
  "ubuntu-22.04",
  "ubuntu-26.04",
  "ubuntu-24.04-arm",
  "ubuntu-22.04-arm",
  "ubuntu-slim",
  "windows-latest",
  "windows-2025",
  "windows-2022",
  "windows-11-arm",
  "windows-2025-vs2026",
  "macos-latest",
  "macos-26",
  "macos-15",
  "macos-14",
  "macos-15-intel",
  "macos-latest-large",
  "macos-15-large",
  "macos-14-large",
  "macos-latest-xlarge",
  "macos-15-xlarge",
  "macos-14-xlarge",
  "macos-26-large",
  "macos-26-xlarge",
];

const ofEveryRunner = ["self-hosted", "linux", "windows", "macos", "x64", "arm64", "arm", "x86"];

export const labelsKnown: readonly string[] = [...hosted, ...ofEveryRunner];
