package shell

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bellwether/wire"
	"bellwether/zk"
)

func TestParseACL(t *testing.T) {
	for text, want := range map[string][]wire.ACL{
		"world:anyone:cdrwa": {{Perms: wire.PermAll, ID: wire.ID{Scheme: "world", ID: "anyone"}}},
		"auth::rw":           {{Perms: wire.PermRead | wire.PermWrite, ID: wire.ID{Scheme: "auth"}}},
		// An id may contain colons: the first and the last colon of an entry count.
		"digest:ann:a+b/c=:r,ip:fd00::1/64:d": {
			{Perms: wire.PermRead, ID: wire.ID{Scheme: "digest", ID: "ann:a+b/c="}},
			{Perms: wire.PermDelete, ID: wire.ID{Scheme: "ip", ID: "fd00::1/64"}},
		},
		// The subject of a certificate contains commas.
		`ip:::1:d,x509:O=Org \"Q\",CN=a\, b:rw,x509:CN=c:r`: {
			{Perms: wire.PermDelete, ID: wire.ID{Scheme: "ip", ID: "::1"}},
			{Perms: wire.PermRead | wire.PermWrite, ID: wire.ID{Scheme: "x509", ID: `O=Org \"Q\",CN=a\, b`}},
			{Perms: wire.PermRead, ID: wire.ID{Scheme: "x509", ID: "CN=c"}},
		},
		"a:b:aacc": {{Perms: wire.PermCreate | wire.PermAdmin, ID: wire.ID{Scheme: "a", ID: "b"}}},
		"":         nil, ",": nil, "a": nil, "a:b": nil, "a:b:": nil, "a:b:x": nil, "a:b:c,": nil, "a:b:R": nil,
		"x509:CN=a": nil, "x509:CN=a,": nil, "x509:CN=a,O=b": nil, "x509:CN=a,O=b:x": nil, "x509:CN=a:r,O=b": nil,
	} {
		got, err := parseACL(text)
		var s *StatusError
		switch {
		case want != nil && (err != nil || !slices.Equal(got, want)):
			t.Errorf("%q: %v, %v", text, got, err)
		case want == nil && (!errors.As(err, &s) || s.Status != ExitUsage):
			t.Errorf("%q: %v, %v; want a usage error", text, got, err)
		}
	}
}

// TestParseSrvr shows that the answer of an Apache ZooKeeper 3.8 leader to srvr is parsed.
func TestParseSrvr(t *testing.T) {
	got := parseSrvr("Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on 2022-02-25 08:49 UTC\n" +
		"Latency min/avg/max: 0/0.1538/4\nReceived: 3\nSent: 2\nConnections: 1\nOutstanding: 5\nZxid: 0x100000003\n" +
		"Mode: leader\nNode count: 7\nProposal sizes last/min/max: 89/48/89\n")
	want := serverStatus{
		Mode: "leader", Zxid: "0x100000003", Version: "3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f",
		Latency: "0/0.1538/4", Received: 3, Connections: 1, Outstanding: 5, Nodes: 7,
	}
	if got != want {
		t.Errorf("%+v", got)
	}
	if got := parseSrvr("READ-ONLY mode; serving only read-only clients\nMode: read-only\nRead-only because: no space\n"); got.Mode != "read-only" || got.Reason != "no space" {
		t.Errorf("a server with a full disk: %+v", got)
	}
	if got := parseSrvr("This ZooKeeper instance is not currently serving requests\n"); got != (serverStatus{}) {
		t.Errorf("a server that does not serve: %+v", got)
	}
}

func TestWithPort(t *testing.T) {
	for in, want := range map[string]string{
		"zk1": "zk1:2181", "zk1:7": "zk1:7", "[::1]:7": "[::1]:7", "[::1]": "[::1]:2181", "::1": "[::1]:2181",
	} {
		if got := withPort(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestErrorsAsInZooKeeperCLI shows the texts that people and scripts know from ZooKeeper's
// command line.
func TestErrorsAsInZooKeeperCLI(t *testing.T) {
	for code, want := range map[error]string{
		zk.ErrNoNode:                  "Node does not exist: /x",
		zk.ErrNodeExists:              "Node already exists: /x",
		zk.ErrNotEmpty:                "Node not empty: /x",
		zk.ErrBadVersion:              "version No is not valid : /x",
		zk.ErrNoAuth:                  "Insufficient permission : /x",
		zk.ErrInvalidACL:              "Acl is not valid : /x",
		zk.ErrNoChildrenForEphemerals: "Ephemerals cannot have children: /x",
		zk.ErrNotReadOnly:             "Not a read-only call: /x",
		zk.ErrQuotaExceeded:           "Quota has exceeded : /x",
		zk.ErrSessionExpired:          "create /x: " + zk.ErrSessionExpired.Error(),
	} {
		if got := cliError(&zk.OpError{Op: "create", Path: "/x", Err: code}); got.Error() != want {
			t.Errorf("%v: %q, want %q", code, got, want)
		}
	}
	for code, want := range map[error]string{
		zk.ErrBadArguments: "Arguments are not valid : /zookeeper/config (the change breaks a rule, which the log of the leader names)",
		zk.ErrUnsupported:  "the server runs standalone and has no members",
		zk.ErrNoAuth:       "Insufficient permission : /zookeeper/config",
	} {
		if got := cliError(&zk.OpError{Op: "reconfig", Path: "/zookeeper/config", Err: code}); got.Error() != want {
			t.Errorf("reconfig, %v: %q, want %q", code, got, want)
		}
	}
	other := errors.New("other")
	refused := fmt.Errorf("connect to a:1: %w: %w", zk.ErrAuthFailed, wire.ErrSessionClosedRequireAuth) // the server refused before the first request
	if got := cliError(refused); !strings.Contains(got.Error(), "use --sasl-user") {
		t.Errorf("%q gives no advice", got)
	}
	if cliError(other) != other || cliError(nil) != nil {
		t.Error("an error that does not come from the server was changed")
	}
}
