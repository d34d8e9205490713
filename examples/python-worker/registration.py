"""Registers a worker with a token, and renews what it calls with.

A token (`millrace worker token --labels lang=python`) is exchanged for a credential of the worker's own, by HTTP at the
same port. The worker's instance and its credential are kept in a folder, so that it is the same worker after a restart.
"""

import asyncio
import json
import logging
import os
import pathlib
import secrets
import ssl
import urllib.error
import urllib.request

VERSION = "0.1.0"  # of Millrace, whose protocol this worker speaks (cluster.workerVersionMin)
PREFIX = "mrw1."  # how such a token begins
RETRY_S = 5

log = logging.getLogger("worker")


class Refused(Exception):
    """It is no use to ask again."""


class Registration:
    def __init__(self, address, token, folder, slots, ca=None):
        self._address, self._token, self._slots = address, token, slots
        self._scheme = "https" if ca else "http"
        self._tls = ssl.create_default_context(cafile=ca) if ca else None
        self._file = pathlib.Path(folder) / "worker.json"
        self._kept = self._read()
        self.credential = None

    async def begin(self):
        """What the worker is called, and what it calls with. Registers it, unless it is registered."""
        if "token" in self._kept:
            try:
                return self._use(await self._ask("renew", self._kept["token"], {}))
            except Refused:
                pass  # it was away for too long
        given = {"token": self._token, "instance": self._kept["instance"]}
        return self._use(await self._ask("register", None, given))

    async def renew_until_dismissed(self, renewed):
        """Calls back with each new token. Returns why the worker is to leave."""
        wait_s = self.credential["renewInMs"] / 1_000
        while True:
            if "drain" in self.credential:
                return self.credential["drain"]
            await asyncio.sleep(wait_s)
            try:
                renewed(self._use(await self._ask("renew", self.credential["token"], {}))["token"])
                wait_s = self.credential["renewInMs"] / 1_000
            except Refused as error:
                return str(error)
            except OSError as error:
                log.warning("the worker's credential was not renewed: %s", error)
                wait_s = RETRY_S

    def _use(self, credential):
        self.credential = credential
        self._write({**self._kept, "token": credential["token"]})
        return credential

    async def _ask(self, what, token, fields):
        return await asyncio.to_thread(self._post, what, token, fields)

    def _post(self, what, token, fields):
        body = json.dumps({**fields, "version": VERSION, "slots": self._slots}).encode()
        headers = {"content-type": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        url = f"{self._scheme}://{self._address}/v1/workers/{what}"
        request = urllib.request.Request(url, body, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=10, context=self._tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in (401, 403, 409):
                raise Refused(json.load(error).get("title", error.reason)) from None
            raise

    def _read(self):
        try:
            return json.loads(self._file.read_text())
        except FileNotFoundError:
            made = {"instance": secrets.token_hex(16)}
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._write(made)
            return made

    def _write(self, kept):
        """For this user alone: it holds what the worker calls with."""
        new = self._file.with_suffix(".new")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(kept, file)
        new.replace(self._file)
        self._kept = kept
