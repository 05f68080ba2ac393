"""A real Slurm with one node, this computer."""

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helpers import terminal
from tests.tools.hub import free_ports


def is_installed() -> bool:
    """Whether Slurm's programs are on the PATH, and this is root, who alone can start jobs."""
    return all(map(shutil.which, ("slurmctld", "slurmd", "sbatch"))) and not os.geteuid()


@contextmanager
def running(parent: Path) -> Iterator[Path]:
    """The configuration, for SLURM_CONF, of a Slurm that runs meanwhile."""
    host, folder = socket.gethostname().split(".")[0], parent / "slurm"
    first, second = free_ports(2)
    folder.mkdir()
    (folder / "slurm.conf").write_text(f"""ClusterName=course
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
ReturnToService=2
SlurmctldPort={first}
SlurmdPort={second}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}
SlurmdSpoolDir={folder}
SelectType=select/cons_res
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=60 State=UP
""")
    configuration = {"SLURM_CONF": f"{folder}/slurm.conf"}
    with (
        terminal.started("slurmctld -D -c", folder, **configuration),
        terminal.started("slurmd -D", folder, **configuration),
    ):
        deadline = time.monotonic() + 30
        while "idle" not in (state := terminal.terminal("sinfo -h -o %T", folder, **configuration)):
            assert time.monotonic() < deadline, f"the node is {state!r}, not idle"
            time.sleep(0.3)
        yield folder / "slurm.conf"
