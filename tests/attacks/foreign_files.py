# SPDX-License-Identifier: Apache-2.0
"""Descriptors whose close() waits: sockets that linger for a day, and files of a file system whose server does not answer.

    foreign_files.py FOLDER SOCKET UID N N_CLIENTS [halves]

Mounts such a file system at FOLDER, and sends gantryd N attaches of files of it, from N_CLIENTS connections of the user UID, or of each attach all but the last byte. A process of its own,
since whoever has one of these files waits at its own end. Says "sent"; "held" on its stdin is answered by how many close() wait, "release" by
letting all of them end, and so is its end.
"""

import ctypes
import os
import select
import socket
import struct
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../../src/daemon"))

import gantryd_harness as link  # noqa: E402

DAY_S = 86400
FUSE_LOOKUP, FUSE_GETATTR, FUSE_OPEN, FUSE_RELEASE, FUSE_FLUSH, FUSE_INIT, FUSE_FORGET = 1, 3, 14, 18, 25, 26, 2
FUSE_BATCH_FORGET, FUSE_INTERRUPT = 42, 36
MNT_FORCE, MNT_DETACH = 1, 2
ENOSYS = 38
FILE_NODE = 2


class Lingering:
    """Sockets with unsent data whose peers do not read: close() of the last descriptor of one waits for a day."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(16)
        self.peers = []

    def make(self):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        s.connect(self.listener.getsockname())
        self.peers.append(self.listener.accept()[0])
        s.setblocking(False)
        try:
            while True:
                s.send(bytes(65536))
        except BlockingIOError:
            pass
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, DAY_S))
        return s

    def send(self, connection, data, n):
        """The data with n of them. They are on their way then, and nobody else has one: the receiver is to be stopped until this returns, or
        our own close() might be the last."""
        made = [self.make() for _ in range(n)]
        socket.send_fds(connection, [data], [s.fileno() for s in made])
        for s in made:
            s.close()

    def close(self):
        for p in self.peers:
            p.close()
        self.listener.close()


class StuckFiles:
    """A mounted file system with one file. FLUSH, which each close() asks for, is not answered before release()."""

    def __init__(self, folder):
        """OSError: none can be mounted here."""
        self.folder = folder
        self.held, self.answers, self.lock = [], False, threading.Lock()
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        options = "fd={},rootmode=40000,user_id=0,group_id=0,allow_other".format(self.device)
        if self.libc.mount(b"stuck", folder.encode(), b"fuse", 0, options.encode()):
            code = ctypes.get_errno()
            os.close(self.device)
            raise OSError(code, os.strerror(code))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def open(self):
        return os.open(os.path.join(self.folder, "file"), os.O_RDWR | os.O_CLOEXEC)

    def reply(self, unique, payload=b"", error=0):
        try:
            os.write(self.device, struct.pack("<IiQ", 16 + len(payload), -error, unique) + payload)
        except OSError:
            pass  # who asked has gone

    @staticmethod
    def attributes(node):
        mode = 0o100666 if node == FILE_NODE else 0o40755
        return struct.pack("<QQQQQQIIIIIIIIII", node, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 512, 0)

    def answer(self, op, unique, node):
        if op == FUSE_INIT:
            self.reply(unique, struct.pack("<IIIIHHIIHHIII", 7, 31, 4096, 0, 16, 16, 65536, 1, 16, 0, 0, 0, 0) + bytes(20))
        elif op == FUSE_LOOKUP:
            self.reply(unique, struct.pack("<QQQQII", FILE_NODE, 0, 3600, 3600, 0, 0) + self.attributes(FILE_NODE))
        elif op == FUSE_GETATTR:
            self.reply(unique, struct.pack("<QII", 3600, 0, 0) + self.attributes(node))
        elif op == FUSE_OPEN:
            self.reply(unique, struct.pack("<QII", 1, 0, 0))
        elif op == FUSE_FLUSH:
            with self.lock:
                if not self.answers:
                    self.held.append(unique)
                    return
            self.reply(unique)
        elif op == FUSE_RELEASE:
            self.reply(unique)
        elif op not in (FUSE_FORGET, FUSE_BATCH_FORGET, FUSE_INTERRUPT):
            self.reply(unique, error=ENOSYS)

    def serve(self):
        while True:
            try:
                if not select.select([self.device], [], [], 60)[0]:
                    continue
                request = os.read(self.device, 1 << 20)
            except BlockingIOError:
                continue
            except OSError:
                return  # it is unmounted
            _, op, unique, node = struct.unpack_from("<IIQQ", request)
            self.answer(op, unique, node)

    def n_held(self):
        with self.lock:
            return len(self.held)

    def release(self):
        with self.lock:
            self.answers, held = True, self.held
        for unique in held:
            self.reply(unique)

    def close(self):
        self.release()
        # Forced: serve() in select() holds the device open for as long as it waits, and with it the kernel's questions.
        self.libc.umount2(self.folder.encode(), MNT_FORCE | MNT_DETACH)
        os.close(self.device)


class SilentFolder(StuckFiles):
    """A mounted file system that takes each question and answers none. Who asks waits for close(), and no signal ends that."""

    def __init__(self, folder):
        self.n_asked = 0
        super().__init__(folder)

    def answer(self, op, unique, node):
        if op == FUSE_INIT:
            super().answer(op, unique, node)
        elif op not in (FUSE_FORGET, FUSE_BATCH_FORGET, FUSE_INTERRUPT):
            self.n_asked += 1


def main():
    folder, path, uid, n, n_clients = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    halves = sys.argv[6:] == ["halves"]
    try:
        files = StuckFiles(folder)
    except OSError as e:
        print("skip", e, flush=True)
        return
    os.seteuid(uid)
    try:
        clients = [link.Client(path) for _ in range(n_clients)]
    except PermissionError as e:
        print("skip", e, flush=True)
        clients = []
    os.seteuid(0)
    if not clients:
        files.close()
        return
    kept = []
    for i in range(n):
        kept += [files.open(), files.open()]
        frame = link.frame(link.ATTACH, 1, link.attach(platform=99))
        clients[i % len(clients)].send(frame[:-1] if halves else frame, kept[-2:])
    print("sent", flush=True)
    for line in sys.stdin:
        if line.startswith("held"):
            print(files.n_held(), flush=True)
        elif line.startswith("hang up"):
            for c in clients:
                c.close()
            print("hung up", flush=True)
        else:
            break
    files.release()
    for fd in kept:
        os.close(fd)
    for c in clients:
        c.close()
    files.close()
    print("released", flush=True)


if __name__ == "__main__":
    main()
