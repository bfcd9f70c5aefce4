#!/usr/bin/env python3
"""ONNX Runtime as a peer of `elliptical bench`: the same elliptical attention as an ONNX graph.

    out = Softmax(MatMul(q * metric * scale, k^T) + mask) v

Speaks JSON, one line in, one line out; ends with its input:

    {"open": {"folder": F, "inputs": {"q": [B, H, N, D], ...}, "threads": T}}  ->  {} or {"error": why}
    {"run": true}       ->  {"seconds": s}     one timed call, outputs allocated inside
    {"write": "out"}    ->  {}                 the last result, raw float32, into F/out

Inputs lie in F as raw float32. Needs onnxruntime and onnx (tools/setup --tests).
"""

import json
import math
import sys
import time
from pathlib import Path

# The caller's OpenMP threads spin for a moment after their last call; they must not share our cores.
SETTLE_SECONDS = 0.01


def make_graph(shapes):
    """The model as bytes. `shapes` maps the input names to their shapes; mask is optional."""
    from onnx import TensorProto, helper

    scale = helper.make_tensor(
        "scale", TensorProto.FLOAT, [], [1 / math.sqrt(shapes["q"][-1])]
    )
    nodes = [
        helper.make_node("Mul", ["metric", "scale"], ["scaled_metric"]),
        helper.make_node("Mul", ["q", "scaled_metric"], ["scaled_q"]),
        helper.make_node("Transpose", ["k"], ["k_transposed"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["scaled_q", "k_transposed"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["probabilities"], axis=-1),
        helper.make_node("MatMul", ["probabilities", "v"], ["out"]),
    ]
    if "mask" in shapes:
        nodes[4].input[0] = "masked_scores"
        nodes.insert(4, helper.make_node("Add", ["scores", "mask"], ["masked_scores"]))
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    ]
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, shapes["q"])
    graph = helper.make_graph(
        nodes, "elliptical_attention", inputs, [out], initializer=[scale]
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=8
    ).SerializeToString()


class Peer:
    def __init__(self, folder, inputs, threads):
        import numpy
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Between its own calls it must not spin on the cores that others are timed on.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = onnxruntime.InferenceSession(
            make_graph(inputs), options, providers=["CPUExecutionProvider"]
        )
        self.folder = Path(folder)
        self.feed = {
            name: numpy.fromfile(self.folder / name, dtype=numpy.float32).reshape(shape)
            for name, shape in inputs.items()
        }
        self.out = None

    def run(self):
        time.sleep(SETTLE_SECONDS)
        start = time.perf_counter()
        out = self.session.run(None, self.feed)[0]
        seconds = time.perf_counter() - start
        self.out = out
        return {"seconds": seconds}

    def write(self, name):
        self.out.tofile(self.folder / name)
        return {}


def main():
    peer = None
    for line in sys.stdin:
        request = json.loads(line)
        if "open" in request:
            try:
                peer = Peer(**request["open"])
                answer = {}
            except ImportError as error:
                answer = {"error": f"{error} (run: tools/setup --tests)"}
        elif "run" in request:
            answer = peer.run()
        else:
            answer = peer.write(request["write"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
