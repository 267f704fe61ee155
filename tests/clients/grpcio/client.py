"""Calls one gRPC method with messages given as bytes, and prints as JSON what the library shows of the outcome.

    client.py ADDRESS PATH unary|stream SECONDS HEX...

The status, both kinds of metadata and the answers are what grpcio hands to any program that uses it.
"""

import json
import sys

import grpc


def pairs(metadata):
    return [[key, value if isinstance(value, str) else value.hex()] for key, value in metadata or ()]


def call(channel, path, kind, seconds, messages):
    if kind == "unary":
        return channel.unary_unary(path).with_call(messages[0], timeout=seconds)
    return channel.stream_unary(path).with_call(iter(messages), timeout=seconds)


def main(address, path, kind, seconds, *messages):
    with grpc.insecure_channel(address) as channel:
        answers = []
        try:
            answer, outcome = call(channel, path, kind, float(seconds), [bytes.fromhex(message) for message in messages])
            answers.append(answer.hex())
        except grpc.RpcError as refused:
            outcome = refused
        json.dump(
            {
                "code": outcome.code().value[0],
                "details": outcome.details(),
                "initial": pairs(outcome.initial_metadata()),
                "trailing": pairs(outcome.trailing_metadata()),
                "answers": answers,
            },
            sys.stdout,
        )


main(*sys.argv[1:])
