import torch

torch.set_num_threads(1)  # as quick on a quiet computer, and much quicker beside others
