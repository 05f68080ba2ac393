"""Profile the training of one program, once for each file: PROGRAM FILE [FILE ...].

From Python 3.12 on, cProfile also measures the other threads of its process, and a
notebook has several.
"""

import cProfile
import io
import runpy
import sys

program_file, *files = sys.argv[1:]
program, log = runpy.run_path(program_file), io.StringIO()
train, pictures = program["train"], program["pictures"]
train(*pictures(4), log=log)  # to warm up
pngs_and_labels = pictures(12)
for file in files:
    with cProfile.Profile() as profile:
        train(*pngs_and_labels, log=log)
    profile.dump_stats(file)
