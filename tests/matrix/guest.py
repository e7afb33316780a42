#!/usr/bin/env python3
"""Runs test programs on a processor that this machine is not: in Linux on Bochs.

  guest.py TOOLS PROGRAM ... [-- ARGUMENT ...]

TOOLS is what need_bochs of scripts/setup.sh unpacked: Bochs, a Linux kernel, a boot loader, busybox. The processor is Bochs' Sapphire Rapids: AVX-512 with VNNI, VBMI, BF16 and FP16, and AVX-VNNI; without AMX,
as Bochs lacks the switch (XFD) that Linux wants before it hands out tiles: tests/support/amx.cc stands in. qemu has none of these.

Programs run one after the other, with the environment's SKUA_* and GTEST_*. Lines of the machine itself begin with a number that no program knows. What they print, their files in SKUA_TEST_ACCOUNT and the first exit status that is not 0 come back; 77
where the machine does not start.
"""
import base64
import ctypes
import glob
import gzip
import io
import os
import pty
import re
import secrets
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import tty

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev
stty -onlcr < /dev/console
cd /tmp
export {environment}
status=0
for program in {programs}; do
  echo "{mark} begin $program"
  /programs/$program {arguments}
  ended=$?
  [ $status != 0 ] || status=$ended
done
cd /account
if [ -n "$(ls)" ]; then echo "{mark} account"; tar c * | gzip | base64; fi
echo "{mark} exit $status"
sleep 1  # what the line still holds
poweroff -f
"""

# nopcid no5lvl: Bochs 3.0 does not return from system management mode, which switches ACPI on, with these bits in CR4.
BOOT = """default guest
label guest
 kernel vmlinuz
 append initrd=initrd console=ttyS0,115200 loglevel=2 cryptomgr.notests nopcid no5lvl lsm= mitigations=off random.trust_cpu=on
"""

BOCHS = """display_library: term
romimage: file={tools}/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file={tools}/usr/share/vgabios/vgabios.bin
cpu: model=sapphire_rapids, ips=100000000, reset_on_triple_fault=0, ignore_bad_msrs=1, exclude_features="amx, amx_int8, amx_bf16"
memory: guest=2048, host=2048
ata0-master: type=cdrom, path={folder}/boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=term, dev={serial}
speaker: enabled=0
log: {folder}/bochs.log
panic: action=fatal
error: action=ignore
"""


def archive(root):
    """A folder as what the kernel unpacks: cpio, new ASCII format."""
    out = io.BytesIO()

    def add(name, mode, data):
        name = name.encode() + b"\0"
        header = [add.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
        out.write(b"070701" + b"".join(b"%08x" % field for field in header) + name)
        out.write(b"\0" * (-out.tell() % 4) + data)
        out.write(b"\0" * (-out.tell() % 4))
        add.inode += 1

    add.inode = 1
    for folder, folders, files in os.walk(root):
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            data = b""
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    data = file.read()
            add(os.path.relpath(path, root), os.stat(path).st_mode, data)
    add("TRAILER!!!", 0, b"")
    return out.getvalue()


def libraries(program):
    text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(", text)


def make_disk(tools, folder, run, programs, arguments, mark):
    root, disk = os.path.join(folder, "root"), os.path.join(folder, "disk")
    for name in ("bin", "proc", "sys", "dev", "tmp", "account", "programs"):
        os.makedirs(os.path.join(root, name))
    os.makedirs(disk)
    shutil.copy(f"{tools}/usr/bin/busybox", f"{root}/bin/busybox")
    for program in programs:
        subprocess.run(["strip", "-o", f"{root}/programs/{os.path.basename(program)}", program], check=True)
    for path in {library for program in programs for library in libraries(program)}:
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, root + path)
    environment = {"GTEST_COLOR": "no", **{k: v for k, v in os.environ.items() if k.startswith(("SKUA_", "GTEST_"))}}
    if "SKUA_TEST_ACCOUNT" in environment:
        environment["SKUA_TEST_ACCOUNT"] = "/account"
    with open(f"{root}/init", "w") as file:
        file.write(INIT.format(mark=mark, environment=" ".join(f"{k}={shlex.quote(v)}" for k, v in environment.items()), programs=shlex.join(os.path.basename(p) for p in programs), arguments=shlex.join(arguments)))
    os.chmod(f"{root}/init", 0o755)
    with open(f"{disk}/initrd", "wb") as file:
        file.write(gzip.compress(archive(root), 6))
    with open(f"{disk}/isolinux.cfg", "w") as file:
        file.write(BOOT)
    shutil.copy(glob.glob(f"{tools}/boot/vmlinuz-*")[0], f"{disk}/vmlinuz")
    shutil.copy(f"{tools}/usr/lib/ISOLINUX/isolinux.bin", disk)
    shutil.copy(f"{tools}/usr/lib/syslinux/modules/bios/ldlinux.c32", disk)
    run("xorriso", "-as", "mkisofs", "-quiet", "-o", f"{folder}/boot.iso", "-b", "isolinux.bin", "-c", "boot.cat", "-no-emul-boot", "-boot-load-size", "4", "-boot-info-table", disk)


def main():
    tools, *programs = sys.argv[1:]
    arguments = []
    if "--" in programs:
        programs, arguments = programs[:programs.index("--")], programs[programs.index("--") + 1:]
    if not programs:
        raise SystemExit(__doc__)
    tools = os.path.realpath(tools)
    if not os.path.exists(f"{tools}/.unpacked"):
        raise SystemExit(f"guest.py: {tools} is not there; bash -c 'source scripts/setup.sh; need_bochs' unpacks build/tools/bochs")
    lib = f"{tools}/usr/lib/x86_64-linux-gnu"

    def command(name, *words):  # the tools are of another release, with libraries of their own
        return [f"{lib}/ld-linux-x86-64.so.2", "--library-path", lib, f"{tools}/usr/bin/{name}", *words]

    mark = secrets.token_hex(8)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of the folder's end
    with tempfile.TemporaryDirectory() as folder:
        make_disk(tools, folder, lambda *words: subprocess.run(command(*words), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), programs, arguments, mark)
        serial, serial_end = pty.openpty()
        screen, screen_end = pty.openpty()
        tty.setraw(serial_end)
        with open(f"{folder}/bochsrc", "w") as file:
            file.write(BOCHS.format(tools=tools, folder=folder, serial=os.ttyname(serial_end)))
        environment = dict(os.environ, LTDL_LIBRARY_PATH=f"{lib}/bochs/plugins", BXSHARE=f"{tools}/usr/share/bochs", TERM="linux")
        bochs = subprocess.Popen(command("bochs-bin", "-q", "-f", f"{folder}/bochsrc"), env=environment, stdin=screen_end, stdout=screen_end, stderr=screen_end,
                                 preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG
        status, account, rest, ended, started, patience = None, None, b"", False, False, time.monotonic() + 300
        while not ended:
            if not started and time.monotonic() > patience:
                bochs.kill()
            ended = bochs.poll() is not None
            while ready := select.select([serial, screen], [], [], 0 if ended else 1)[0]:
                if screen in ready:
                    os.read(screen, 1 << 16)
                if serial not in ready:
                    continue
                *lines, rest = (rest + os.read(serial, 1 << 16)).split(b"\n")
                for line in lines:
                    text = line.decode(errors="replace").rstrip("\r")
                    said = text.split()[1:] if text.startswith(mark) else [""]
                    if said[0] == "begin":
                        started = True
                        print("==", said[1], flush=True)
                    elif said[0] == "account":
                        account = ""
                    elif said[0] == "exit":
                        status = int(said[1])
                    elif account is not None and status is None:
                        account += text
                    else:
                        print(text, flush=True)
        if status is None:
            with open(f"{folder}/bochs.log", errors="replace") as file:
                sys.stdout.writelines(file.readlines()[-40:])
            print("the emulated machine stopped before the programs did" if started else "the emulated machine did not start")
            if not started and (folder := os.environ.get("SKUA_TEST_ACCOUNT")):
                with open(f"{folder}/account.{mark}", "w") as file:
                    file.writelines(f"skip {os.path.basename(program)} the emulated machine did not start\n" for program in programs)
            return 1 if started else 77
    if account:
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(account))) as files:
            files.extractall(os.environ["SKUA_TEST_ACCOUNT"])
    return 1 if status == 77 else status  # which would say that nothing was run


if __name__ == "__main__":
    sys.exit(main())
