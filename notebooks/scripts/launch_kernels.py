"""Launch one matrix product twenty times: for ncu, which asks why it is slow.

With a GPU, run ``ncu --kernel-name-base demangled -k "regex:gemm|nvjet"
--launch-skip 10 -c 3 --kill yes python scripts/launch_kernels.py``, or submit
assets/jobs/slurm/ncu.sbatch.
"""

import sys

import torch

if not torch.cuda.is_available():
    sys.exit("this needs an NVIDIA GPU that PyTorch can use; there is none")
a, b = (
    torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2)
)
for _ in range(20):
    a @ b
torch.cuda.synchronize()
