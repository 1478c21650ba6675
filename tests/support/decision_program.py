"""Serves a GGUF file by llama.cpp's own server, until standard input ends; prints its address."""

import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx, params.n_parallel, params.port = 2048, 1, 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
