"""JupyterHub for a class on one Linux computer: docs/instructors.md says how to start it, as root.

Each student is a user of this computer, and reads this course's folder and its ``.venv``.
"""

import sys
from pathlib import Path

c = get_config()  # noqa: F821  (JupyterHub puts it there)

COURSE = Path(__file__).resolve().parent.parent
START, ENVIRONMENT = COURSE / "deploy" / "start", COURSE / ".venv"

for path in (START, ENVIRONMENT / "bin" / "jupyterhub-singleuser", Path(sys.executable).resolve()):
    if closed := [part for part in (path, *path.parents) if not part.stat().st_mode & 0o001]:
        sys.exit(
            f"Students cannot use {path}, because they may not enter {closed[-1]}: put the course "
            "and its Python where all users can read them, and install with umask 022."
        )

c.JupyterHub.bind_url = "http://127.0.0.1:8000"  # for the TLS server that you put in front of it
c.ConfigurableHTTPProxy.command = str(ENVIRONMENT / "node_modules/.bin/configurable-http-proxy")
c.LocalAuthenticator.allowed_groups = {"students"}  # of this computer; add users with useradd
c.Spawner.cmd = [str(START)]
# docs/instructors.md, "Time". If both are set, MKL's wins.
c.Spawner.environment = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
c.Spawner.mem_limit = "2G"  # the default spawner ignores it; SystemdSpawner enforces it
c.Spawner.start_timeout = c.Spawner.http_timeout = 300  # a whole class starts at the same time
