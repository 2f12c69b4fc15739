package peerwire_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// electionVector is a message of testdata/election.json, captured between
// servers of Apache ZooKeeper 3.8.0 or sent to one.
type electionVector struct {
	Name    string
	Kind    string
	Hex     string
	Decoded json.RawMessage
}

// electionFile holds what the tests use of testdata/election.json.
type electionFile struct {
	Vectors       []electionVector
	Probes        []electionVector
	InitialProbes []electionVector
	SASL          []electionVector
}

func readElectionFile(t testing.TB) *electionFile {
	f := new(electionFile)
	wiretest.ReadJSON(t, "election.json", f)
	return f
}

// TestElectionMessagesDecodeAndEncode decodes every captured message, and encodes it again.
func TestElectionMessagesDecodeAndEncode(t *testing.T) {
	vectors := readElectionFile(t).Vectors
	if len(vectors) != 166 {
		t.Errorf("%d vectors, want 166", len(vectors))
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			raw := wiretest.Unhex(t, v.Hex)
			var want wiretest.Object
			wiretest.Unmarshal(t, v.Decoded, &want)
			if v.Kind == "INITIAL" {
				m := new(peerwire.InitialMessage)
				wiretest.DecodeWhole(t, raw, m)
				wiretest.EqualJSON(t, showInitial(m), want)
				wiretest.EqualBytes(t, wire.Append(nil, m), raw)
				return
			}
			b, err := peerwire.ReadElectionFrame(bytes.NewReader(raw), nil)
			if err != nil {
				t.Fatal(err)
			}
			n := new(peerwire.Notification)
			wiretest.DecodeWhole(t, b, n)
			wiretest.EqualJSON(t, showNotification(n, len(b)), want)
			wiretest.EqualBytes(t, wire.AppendFrame(nil, n), raw)
		})
	}
}

func showInitial(m *peerwire.InitialMessage) wiretest.Object {
	addresses := strings.Join(m.Addresses, "|")
	return wiretest.Object{"protocolVersion": m.Version, "sid": m.Server, "addressLength": len(addresses), "addresses": addresses}
}

func showNotification(n *peerwire.Notification, size int) wiretest.Object {
	return wiretest.Object{
		"length": size, "state": n.State, "stateName": n.State.String(), "leader": n.Leader,
		"zxid": wiretest.Hex0x(n.Zxid), "electionEpoch": n.ElectionEpoch, "peerEpoch": n.PeerEpoch,
		"version": n.Version, "configLength": len(n.Config), "config": n.Config,
	}
}

// TestProbesOfTheElectionPort: messages that a ZooKeeper server accepted decode. Messages that it
// dropped, or because of which it closed the connection, do not.
func TestProbesOfTheElectionPort(t *testing.T) {
	want := map[string]error{
		"probe/v2-looking":                    nil,
		"probe/v1-40-bytes":                   nil,
		"probe/v0-28-bytes":                   nil,
		"probe/36-bytes":                      wire.ErrShort,
		"probe/20-bytes":                      wire.ErrShort,
		"probe/state-7":                       wire.ErrValue,
		"probe/state-following":               nil,
		"probe/cfglen-1000-with-2-bytes":      wire.ErrShort,
		"probe/cfglen-negative":               wire.ErrLength,
		"probe/cfg-unparsable":                nil, // the vote counts; the receiver parses the text of the configuration later
		"probe/version-3":                     nil,
		"probe/cfg-empty":                     nil,
		"probe/length-0":                      &wire.FrameError{Len: 0, Max: peerwire.ElectionFrameMax},
		"probe/length-524289":                 &wire.FrameError{Len: peerwire.ElectionFrameMax + 1, Max: peerwire.ElectionFrameMax},
		"probe-initial/v1":                    nil,
		"probe-initial/v2-two-addresses":      nil,
		"probe-initial/legacy-sid-only":       nil,
		"probe-initial/bad-version":           wire.ErrValue,
		"probe-initial/empty-address":         wire.ErrValue,
		"probe-initial/address-without-port":  wire.ErrValue,
		"probe-initial/own-sid":               nil,
		"probe-initial/observer-max-sid":      nil,
		"probe-initial/unknown-larger-sid-99": nil,
		"probe-initial/smaller-sid-0":         nil,
	}
	file := readElectionFile(t)
	probes := append(file.Probes, file.InitialProbes...)
	if len(probes) != len(want) {
		t.Errorf("%d probes, want %d", len(probes), len(want))
	}
	for _, v := range probes {
		t.Run(v.Name, func(t *testing.T) {
			raw := wiretest.Unhex(t, v.Hex)
			again, err := electionRoundTrip(v.Kind, raw)
			expected, known := want[v.Name]
			var frame, wanted *wire.FrameError
			switch {
			case !known:
				t.Errorf("no expectation, error %v", err)
			case errors.As(expected, &wanted):
				if !errors.As(err, &frame) || *frame != *wanted {
					t.Errorf("error %v, want %v", err, expected)
				}
			case !errors.Is(err, expected):
				t.Errorf("error %v, want %v", err, expected)
			case err == nil:
				wiretest.EqualBytes(t, again, raw)
			}
		})
	}
}

// electionRoundTrip decodes what an election connection receives and encodes
// it again.
func electionRoundTrip(kind string, raw []byte) ([]byte, error) {
	r := bytes.NewReader(raw)
	if kind == "INITIAL" {
		m := new(peerwire.InitialMessage)
		err := wire.ReadRecord(bufio.NewReader(r), m, peerwire.InitialMax)
		return wire.Append(nil, m), err
	}
	b, err := peerwire.ReadElectionFrame(r, nil)
	if err != nil {
		return nil, err
	}
	n := new(peerwire.Notification)
	err = wire.Decode(b, n)
	return wire.AppendFrame(nil, n), err
}

// notification returns the payload of a frame; the important fields are given in hex.
func notification(state, peerEpochAndOn string) string {
	return state + " 0000000000000003 0000000500000007 0000000000000002 " + peerEpochAndOn
}

// TestFormsOfNotifications: the length of a message decides which form it has.
func TestFormsOfNotifications(t *testing.T) {
	vote := peerwire.Notification{State: peerwire.Leading, Leader: 3, Zxid: 0x500000007, ElectionEpoch: 2, PeerEpoch: 5}
	form := func(v peerwire.NotificationVersion, config string) peerwire.Notification {
		n := vote
		n.Version, n.Config = v, config
		return n
	}
	const epoch = "0000000000000005 "
	for _, tt := range []struct {
		name  string
		body  string
		want  peerwire.Notification
		exact bool // the message encodes to the same bytes
	}{
		{"28 bytes take the epoch from the zxid", "", form(peerwire.NotificationBare, ""), true},
		{"40 bytes", epoch + "00000001", form(peerwire.NotificationPlain, ""), true},
		{"40 bytes with another version", epoch + "00000002", form(peerwire.NotificationPlain, ""), false},
		{"40 bytes with a negative version", epoch + wiretest.Null, form(peerwire.NotificationPlain, ""), false},
		{"version 1 with bytes behind it", epoch + "00000001 00000001 78", form(peerwire.NotificationPlain, ""), false},
		{"version 2", epoch + "00000002 00000001 78", form(peerwire.NotificationConfig, "x"), true},
		{"version 2 with an empty text", epoch + "00000002 00000000", form(peerwire.NotificationConfig, ""), true},
		{"version 9 as version 2", epoch + "00000009 00000001 78", form(9, "x"), true},
		{"bytes behind the text", epoch + "00000002 00000001 78 79", form(peerwire.NotificationConfig, "x"), false},
		{"text that is not UTF-8", epoch + "00000002 00000001 ff", form(peerwire.NotificationConfig, "\ufffd"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := wiretest.BytesOf(t, notification("00000002", tt.body))
			n := peerwire.Notification{Config: "left from an earlier use"}
			c := wire.Decoder(b)
			if n.Code(&c); c.Err() != nil || n != tt.want {
				t.Errorf("%+v, error %v, want %+v", n, c.Err(), tt.want)
			}
			if got := bytes.Equal(wire.Append(nil, &n), b); got != tt.exact {
				t.Errorf("encodes to the same bytes: %v, want %v", got, tt.exact)
			}
			if got := c.Canonical() && c.Left() == 0; got != tt.exact {
				t.Errorf("canonical: %v, want %v", got, tt.exact)
			}
		})
	}
}

// TestBadNotificationsAreRefused: a message is refused if its length is that of no form.
func TestBadNotificationsAreRefused(t *testing.T) {
	whole := wiretest.BytesOf(t, notification("00000000", "0000000000000005 00000002 00000004 61626364"))
	for n := range whole {
		if n == peerwire.NotificationBareLen || n == peerwire.NotificationPlainLen {
			continue
		}
		if err := wire.Decode(whole[:n], new(peerwire.Notification)); !errors.Is(err, wire.ErrShort) {
			t.Errorf("%d bytes: error %v, want %v", n, err, wire.ErrShort)
		}
	}
	for _, tt := range []struct {
		name, message string
		want          error
	}{
		{"state 4", notification("00000004", ""), wire.ErrValue},
		{"state -1", notification(wiretest.Null, ""), wire.ErrValue},
		{"null configuration", notification("00000000", "0000000000000005 00000002"+wiretest.Null), wire.ErrNull},
		{"longest configuration", notification("00000000", "0000000000000005 00000002"+wiretest.MaxInt), wire.ErrShort},
	} {
		if err := wire.Decode(wiretest.BytesOf(t, tt.message), new(peerwire.Notification)); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

// TestInitialMessages checks the forms, addresses and limits of initial messages.
func TestInitialMessages(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    peerwire.InitialMessage
		want error
	}{
		{"bare", peerwire.InitialMessage{Version: peerwire.InitialBare, Server: 3}, nil},
		{"bare of server 0", peerwire.InitialMessage{}, nil},
		{"one", peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 3, Addresses: []string{"h:3888"}}, nil},
		{"wildcard", peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 3, Addresses: []string{"0.0.0.0:3888"}}, nil},
		{"IPv6", peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 3, Addresses: []string{"[::1]:3888"}}, nil},
		{"many with one", peerwire.InitialMessage{Version: peerwire.InitialMany, Server: 3, Addresses: []string{"h:1"}}, nil},
		{"many", peerwire.InitialMessage{Version: peerwire.InitialMany, Server: 3, Addresses: []string{"h:1", "[fe80::1%eth0]:2", "i:3"}}, nil},
		{"longest", peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 3, Addresses: []string{strings.Repeat("h", peerwire.InitialAddressMax-2) + ":1"}}, nil},
		{"one with two", peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 3, Addresses: []string{"h:1", "i:2"}}, wire.ErrValue},
		{"IPv6 without brackets", peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 3, Addresses: []string{"::1:3888"}}, wire.ErrValue},
		{"half a bracket", peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 3, Addresses: []string{"[::1:3888"}}, wire.ErrValue},
		{"no host", peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 3, Addresses: []string{":3888"}}, wire.ErrValue},
		{"no port", peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 3, Addresses: []string{"h:"}}, wire.ErrValue},
		{"port in words", peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 3, Addresses: []string{"h:port"}}, wire.ErrValue},
		{"port with a sign", peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 3, Addresses: []string{"h:+1"}}, wire.ErrValue},
		{"port too large", peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 3, Addresses: []string{"h:65536"}}, wire.ErrValue},
		{"empty among many", peerwire.InitialMessage{Version: peerwire.InitialMany, Server: 3, Addresses: []string{"h:1", ""}}, wire.ErrValue},
		{"other version", peerwire.InitialMessage{Version: -65534, Server: 3, Addresses: []string{"h:1"}}, wire.ErrValue},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := wire.Encoder(nil)
			tt.m.Code(&c)
			var got peerwire.InitialMessage
			err := wire.Decode(c.Bytes(), &got)
			if !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			if err == nil && !reflect.DeepEqual(got, tt.m) {
				t.Errorf("%+v, want %+v", got, tt.m)
			}
		})
	}
	tooLong := wire.Append(nil, &peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 3, Addresses: []string{strings.Repeat("h", peerwire.InitialAddressMax-1) + ":1"}})
	if err := wire.Decode(tooLong, new(peerwire.InitialMessage)); !errors.Is(err, wire.ErrLength) {
		t.Errorf("address of one byte too many: error %v, want %v", err, wire.ErrLength)
	}
	if err := wire.ReadRecord(bufio.NewReader(bytes.NewReader(tooLong)), new(peerwire.InitialMessage), peerwire.InitialMax); !errors.Is(err, wire.ErrLength) {
		t.Errorf("the same from a stream: error %v, want %v", err, wire.ErrLength)
	}
}

// TestAnInitialMessageLeavesTheFramesBehindIt: reading an initial message takes no bytes of the frames
// after it.
func TestAnInitialMessageLeavesTheFramesBehindIt(t *testing.T) {
	for _, m := range []*peerwire.InitialMessage{
		{Version: peerwire.InitialBare, Server: 3},
		{Version: peerwire.InitialOne, Server: 3, Addresses: []string{"h:1"}},
		{Version: peerwire.InitialMany, Server: 3, Addresses: []string{"h:1", "i:2"}},
	} {
		n := &peerwire.Notification{Leader: 3, Version: peerwire.NotificationPlain}
		r := bufio.NewReader(bytes.NewReader(wire.AppendFrame(wire.Append(nil, m), n)))
		got := new(peerwire.InitialMessage)
		if err := wire.ReadRecord(r, got, peerwire.InitialMax); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v, error %v, want %+v", got, err, m)
		}
		b, err := peerwire.ReadElectionFrame(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		wiretest.EqualBytes(t, b, wire.Append(nil, n))
		if _, err := peerwire.ReadElectionFrame(r, nil); err != io.EOF {
			t.Errorf("error %v at the end, want EOF", err)
		}
	}
}

// TestQuorumAuthPacketsDecodeAndEncode decodes a captured authentication, and encodes it again.
func TestQuorumAuthPacketsDecodeAndEncode(t *testing.T) {
	vectors := readElectionFile(t).SASL
	if len(vectors) != 10 {
		t.Errorf("%d packets, want 10", len(vectors))
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			raw := wiretest.Unhex(t, v.Hex)
			if v.Kind == "INITIAL" {
				again, err := electionRoundTrip(v.Kind, raw)
				if err != nil {
					t.Fatal(err)
				}
				wiretest.EqualBytes(t, again, raw)
				return
			}
			var want wiretest.Object
			wiretest.Unmarshal(t, v.Decoded, &want)
			p := new(peerwire.QuorumAuthPacket)
			if err := wire.ReadRecord(bufio.NewReader(bytes.NewReader(raw)), p, peerwire.QuorumAuthMax); err != nil {
				t.Fatal(err)
			}
			wiretest.EqualJSON(t, wiretest.Object{"magic": peerwire.QuorumAuthMagic, "status": p.Status, "tokenLength": len(p.Token), "token": string(p.Token)}, want)
			wiretest.EqualBytes(t, wire.Append(nil, p), raw)
		})
	}
}

// TestBadQuorumAuthPacketsAreRefused: a packet is refused if its magic number, its status or the length of
// its token is not valid, or if the stream ends within it.
func TestBadQuorumAuthPacketsAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name, packet string
		want         error
	}{
		{"other magic", "5f2435013501edcd 00000000 00000000", wire.ErrValue},
		{"magic negated", "a0dbcafecafe1234 00000000 00000000", wire.ErrValue},
		{"status 2", "5f2435013501edcc 00000002 00000000", wire.ErrValue},
		{"status -2", "5f2435013501edcc fffffffe 00000000", wire.ErrValue},
		{"token too long", "5f2435013501edcc 00000000 00010000", wire.ErrLength},
		{"token of negative length", "5f2435013501edcc 00000000 fffffffe", wire.ErrLength},
		{"token missing", "5f2435013501edcc 00000000 00000004", io.ErrUnexpectedEOF},
		{"half the magic", "5f243501", io.ErrUnexpectedEOF},
		{"nothing", "", io.EOF},
	} {
		r := bufio.NewReader(bytes.NewReader(wiretest.BytesOf(t, tt.packet)))
		if err := wire.ReadRecord(r, new(peerwire.QuorumAuthPacket), peerwire.QuorumAuthMax); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}
