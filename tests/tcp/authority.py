# SPDX-License-Identifier: Apache-2.0
"""Certificates of a test's own."""

import os
import subprocess


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Authority:
    """Certificates for a test: server, `default` (a tenant), `ops` (an operator), and one that nobody has signed."""

    def __init__(self, folder):
        self.folder = folder
        new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        openssl("req", "-x509", *new, "-days", "3", "-subj", "/CN=authority", "-keyout", self.path("ca.key"), "-out", self.path("ca.pem"))
        openssl("req", "-x509", *new, "-days", "3", "-subj", "/CN=default", "-keyout", self.path("own.key"), "-out", self.path("own.pem"))
        with open(self.path("names"), "w", encoding="utf-8") as f:
            f.write("subjectAltName=IP:127.0.0.1")
        for name in ("server", "default", "ops"):
            openssl("req", *new, "-subj", "/CN=" + name, "-keyout", self.path(name + ".key"), "-out", self.path(name + ".csr"))
            openssl("x509", "-req", "-in", self.path(name + ".csr"), "-CA", self.path("ca.pem"), "-CAkey", self.path("ca.key"),
                    "-CAcreateserial", "-days", "3", "-extfile", self.path("names"), "-out", self.path(name + ".pem"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def server(self):
        return ["--tls-certificate", self.path("server.pem"), "--tls-key", self.path("server.key"),
                "--tls-client-authority", self.path("ca.pem")]

    def client(self, name="default", authority="ca.pem"):
        return {"GANTRY_TLS_CA": self.path(authority), "GANTRY_TLS_CERT": self.path(name + ".pem"),
                "GANTRY_TLS_KEY": self.path(name + ".key")}
