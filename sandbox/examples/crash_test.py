#!/usr/bin/env python3
# Copyright The Tidekeeper Authors.
# SPDX-License-Identifier: Apache-2.0
"""A test of an operator, in Python: does it survive that it is killed between two writes?

OPERATOR is the command that starts the operator, which gets KUBECONFIG. Needs sandbox in the
PATH, and nothing but the standard library. Put your own objects in the place of the ConfigMap
and the Secret. Each test begins with the same objects, by a snapshot.
"""

import http.client
import json
import os
import shlex
import socket
import subprocess
import tempfile
import unittest


class Control(http.client.HTTPConnection):
    """A connection to the proxy's own API, which is a socket at a file."""

    def __init__(self, file):
        super().__init__("proxy")
        self.file = file

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.file)


class Sandbox(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.files.cleanup)
        cls.dir = os.path.join(cls.files.name, "data")
        # Gone when this process is, even if that is killed.
        cls.sandbox("up", "--detach", f"--owner={os.getpid()}", "--nodes=0")
        cls.addClassCleanup(cls.sandbox, "down")
        cls.kubectl("create", "configmap", "bread", "--from-literal=item=bread", "--from-literal=state=new")
        cls.sandbox("snapshot", "save", cls.path("before"))

    def setUp(self):
        self.sandbox("snapshot", "restore", self.path("before"))
        proxy = subprocess.Popen(
            ["sandbox", "proxy", "--data-dir", self.dir, "--write-kubeconfig", self.path("proxied"), "--log", self.path("requests"), "--control", self.path("control")],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.end, proxy)
        for line in proxy.stderr:
            if "kubeconfig" in line:
                break

    @classmethod
    def path(cls, name):
        return os.path.join(cls.files.name, name)

    @classmethod
    def sandbox(cls, command, *args):
        return subprocess.run(
            ["sandbox", command, "--data-dir", cls.dir, *args], check=True, capture_output=True, text=True
        ).stdout

    @classmethod
    def kubectl(cls, *args):
        return cls.sandbox("kubectl", *args)

    def start(self):
        """Starts the operator behind the proxy."""
        operator = subprocess.Popen(
            shlex.split(os.environ["OPERATOR"]), env={**os.environ, "KUBECONFIG": self.path("proxied")}, stderr=subprocess.DEVNULL
        )
        self.addCleanup(self.end, operator)
        return operator

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()

    def ask(self, method, path, body=None):
        """Asks the proxy's own API, and returns what it answers."""
        control = Control(self.path("control"))
        self.addCleanup(control.close)
        control.request(method, path, json.dumps(body) if body else None)
        answer = control.getresponse()
        text = answer.read()
        self.assertLess(answer.status, 400, text)
        return json.loads(text)

    def test_crash_between_two_writes(self):
        second = {"name": "second", "match": {"verbs": ["write"], "resources": ["configmaps", "secrets"]}, "count": {"from": 2, "times": 1}, "fault": {"kind": "Hang"}}
        self.ask("POST", "/rules", {"rules": [second]})
        operator = self.start()
        self.kubectl("label", "configmap", "bread", "shop=order")
        self.ask("GET", "/rules/second?fired=1&timeout=30s")
        operator.kill()
        operator.wait()
        self.start()
        self.kubectl("wait", "configmap/bread", "--for=jsonpath={.data.state}=done", "--timeout=30s")
        self.sandbox("status", "--until-quiet=1s")
        self.assertEqual(self.kubectl("get", "secrets", "-o", "name"), "secret/receipt-bread\n")

    def test_undisturbed(self):
        self.start()
        self.assertEqual(self.kubectl("get", "secrets", "-o", "name"), "", "what the other test made is still there")
        self.kubectl("label", "configmap", "bread", "shop=order")
        self.kubectl("wait", "configmap/bread", "--for=jsonpath={.data.state}=done", "--timeout=30s")


if __name__ == "__main__":
    unittest.main()
