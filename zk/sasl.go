package zk

import "context"

// DigestMD5 is a value for Options.SASL: the DIGEST-MD5 mechanism (RFC 2831).
func DigestMD5(user, password string) func(ctx context.Context, server string) (SASL, error) {
	return func(context.Context, string) (SASL, error) { return newDigestMD5(user, password), nil }
}
