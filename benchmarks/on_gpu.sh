#!/usr/bin/env bash
# What a machine with an NVIDIA GPU is needed for, in at most ten minutes on 16 cores: llama.cpp compiled with CUDA, the
# tests marked gpu, and how near local models come to the limit of the card (docs/install.md, benchmarks/lab.md#gpus).
#
#   benchmarks/on_gpu.sh [MODEL.gguf]      the packaged model, and a larger one
#   BUILD=prebuilt GPU= ROWS=32 benchmarks/on_gpu.sh    tries the script on a CPU
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-compile}
gpu=${GPU---gpu}
rows=${ROWS:-1500}
if [ "$build" = compile ]; then export CMAKE_ARGS=${CMAKE_ARGS:--DGGML_CUDA=on -DLLAMA_BUILD_TOOLS=OFF}; fi
make install BUILD="$build"
.venv/bin/pytest -q -m gpu tests/models/services/llama/test_llama_gpu.py || echo "the tests failed"
for model in smollm2 "$@"; do
    timeout 150 .venv/bin/python benchmarks/bench_local.py --model "$model" $gpu --rows "$rows" || echo "$model: no end in 150 s"
done
