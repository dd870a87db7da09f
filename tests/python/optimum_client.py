"""Runs folders with Optimum, in the environment that has it: optimum_client.py REQUESTS.json RESULTS.json.

A request: the folder, the class of optimum.onnxruntime, texts for the folder's tokenizer or input_features, settings of
generate. A result: what went in and what came out, or the error.
"""

import json
import sys

import optimum.onnxruntime
import torch
from transformers import AutoTokenizer


def run(request: dict) -> dict:
    model = getattr(optimum.onnxruntime, request["class"]).from_pretrained(request["folder"])
    inputs = {name: torch.tensor(value) for name, value in request.get("inputs", {}).items()}
    if "texts" in request:
        tokenizer = AutoTokenizer.from_pretrained(request["folder"], padding_side=request["padding_side"])
        inputs = dict(tokenizer(request["texts"], padding=True, return_tensors="pt"))
    shown = {name: value.tolist() for name, value in inputs.items()}
    if request["generate"] is None:
        with torch.no_grad():
            return {"inputs": shown, "output": model(**inputs).last_hidden_state.tolist()}
    try:
        return {"inputs": shown, "output": model.generate(**inputs, **request["generate"]).tolist()}
    except Exception as error:
        return {"inputs": shown, "error": str(error)}


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        requests = json.load(file)
    with open(sys.argv[2], "w") as file:
        json.dump([run(request) for request in requests], file)
