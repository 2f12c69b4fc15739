"""The client's side of DIGEST-MD5 in kazoo. It writes and reads tokens as lines of base64.
The arguments are the user and the password."""

import base64
import sys

import puresasl.client

client = puresasl.client.SASLClient(
    host="zk-sasl-md5", service="zookeeper", mechanism="DIGEST-MD5", username=sys.argv[1], password=sys.argv[2]
)
challenge = None
while not client.complete:
    token = client.process(challenge=challenge)
    if client.complete and not token:
        print("complete", flush=True)
        break
    print(base64.b64encode(token or b"").decode(), flush=True)
    line = sys.stdin.readline()
    if not line:
        sys.exit("refused")
    challenge = base64.b64decode(line)
