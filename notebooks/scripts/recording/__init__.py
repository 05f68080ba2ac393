"""What record_nsys.py and record_gpu.py beside this folder are made of."""
