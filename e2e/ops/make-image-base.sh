#!/usr/bin/env bash
# Makes a base for the image out of Debian's packages and the Node and npm of this machine, for machines that reach no
# registry of images. As root:
#
#   MILLRACE_CONTAINERS=podman e2e/ops/make-image-base.sh localhost/millrace-base
#   MILLRACE_CONTAINERS=podman MILLRACE_IMAGE_BASE=localhost/millrace-base npm run e2e -- image
#
# Needs debootstrap and tar. Authorities that this machine trusts besides the usual ones are trusted in there, too.
set -euo pipefail
name="${1:?the name of the image to make}"
read -ra tool <<<"${MILLRACE_CONTAINERS:-docker}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
root="$folder/root"

mirror="$(grep -hoE '^(URIs:|deb) .*' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
  grep -oE 'https?://[^ ]+/debian' | head -1 || true)"
debootstrap --variant=minbase bookworm "$root" ${mirror:+"$mirror"}
npm_folder="$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")"
mkdir -p "$root/usr/lib/node_modules" "$root/etc/ssl/certs"
cp "$(readlink -f "$(command -v node)")" "$root/usr/bin/node"
cp -r "$npm_folder" "$root/usr/lib/node_modules/npm"
ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/bin/npm"
# Only for this Node, if it needs it: whether the image brings what its own needs is what is to be seen.
if ldd "$root/usr/bin/node" | grep -q libatomic; then
  chroot "$root" apt-get install -y -qq --no-install-recommends libatomic1
fi
trusted=/etc/ssl/certs/ca-certificates.crt
if [[ -e "$trusted" ]]; then cp "$trusted" "$root/etc/ssl/certs/"; fi
tar -C "$root" -c . | "${tool[@]}" import --change "ENV NODE_EXTRA_CA_CERTS=$trusted" - "$name"
