package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

// electionVector is a message of testdata/election.json, captured between
// servers of Apache ZooKeeper 3.8.0 or sent to one.
type electionVector struct {
	Name    string
	Kind    string
	Hex     string
	Decoded json.RawMessage
}

// electionFile is what the tests use of testdata/election.json.
type electionFile struct {
	Vectors       []electionVector
	Probes        []electionVector
	InitialProbes []electionVector
	SASL          []electionVector
}

func readElectionFile(t testing.TB) *electionFile {
	f := new(electionFile)
	readJSON(t, "election.json", f)
	return f
}

// TestElectionMessagesDecodeAndEncode takes every captured message both ways.
func TestElectionMessagesDecodeAndEncode(t *testing.T) {
	vectors := readElectionFile(t).Vectors
	if len(vectors) != 166 {
		t.Errorf("%d vectors, want 166", len(vectors))
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			raw := unhex(t, v.Hex)
			var want object
			unmarshal(t, v.Decoded, &want)
			if v.Kind == "INITIAL" {
				m := new(InitialMessage)
				decodeWhole(t, raw, m)
				equalJSON(t, showInitial(m), want)
				equalBytes(t, Append(nil, m), raw)
				return
			}
			b, err := ReadElectionFrame(bytes.NewReader(raw), nil)
			if err != nil {
				t.Fatal(err)
			}
			n := new(Notification)
			decodeWhole(t, b, n)
			equalJSON(t, showNotification(n, len(b)), want)
			equalBytes(t, AppendFrame(nil, n), raw)
		})
	}
}

func showInitial(m *InitialMessage) object {
	addresses := strings.Join(m.Addresses, "|")
	return object{"protocolVersion": m.Version, "sid": m.Server, "addressLength": len(addresses), "addresses": addresses}
}

func showNotification(n *Notification, size int) object {
	return object{
		"length": size, "state": n.State, "stateName": n.State.String(), "leader": n.Leader,
		"zxid": hex0x(n.Zxid), "electionEpoch": n.ElectionEpoch, "peerEpoch": n.PeerEpoch,
		"version": n.Version, "configLength": len(n.Config), "config": n.Config,
	}
}

// TestProbesOfTheElectionPort: what a real server was seen to accept decodes,
// and what it dropped or closed the connection over does not.
func TestProbesOfTheElectionPort(t *testing.T) {
	want := map[string]error{
		"probe/v2-looking":                    nil,
		"probe/v1-40-bytes":                   nil,
		"probe/v0-28-bytes":                   nil,
		"probe/36-bytes":                      ErrShort,
		"probe/20-bytes":                      ErrShort,
		"probe/state-7":                       ErrValue,
		"probe/state-following":               nil,
		"probe/cfglen-1000-with-2-bytes":      ErrShort,
		"probe/cfglen-negative":               ErrLength,
		"probe/cfg-unparsable":                nil, // the vote counts, the text is for who parses it
		"probe/version-3":                     nil,
		"probe/cfg-empty":                     nil,
		"probe/length-0":                      &FrameError{Len: 0, Max: ElectionFrameMax},
		"probe/length-524289":                 &FrameError{Len: ElectionFrameMax + 1, Max: ElectionFrameMax},
		"probe-initial/v1":                    nil,
		"probe-initial/v2-two-addresses":      nil,
		"probe-initial/legacy-sid-only":       nil,
		"probe-initial/bad-version":           ErrValue,
		"probe-initial/empty-address":         ErrValue,
		"probe-initial/address-without-port":  ErrValue,
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
			raw := unhex(t, v.Hex)
			again, err := electionRoundTrip(v.Kind, raw)
			expected, known := want[v.Name]
			var frame, wanted *FrameError
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
				equalBytes(t, again, raw)
			}
		})
	}
}

// electionRoundTrip decodes what an election connection receives and encodes
// it again.
func electionRoundTrip(kind string, raw []byte) ([]byte, error) {
	r := bytes.NewReader(raw)
	if kind == "INITIAL" {
		m := new(InitialMessage)
		err := ReadRecord(bufio.NewReader(r), m, InitialMax)
		return Append(nil, m), err
	}
	b, err := ReadElectionFrame(r, nil)
	if err != nil {
		return nil, err
	}
	n := new(Notification)
	err = Decode(b, n)
	return AppendFrame(nil, n), err
}

// notification is a frame's payload with the fields that matter in hex.
func notification(state, peerEpochAndOn string) string {
	return state + " 0000000000000003 0000000500000007 0000000000000002 " + peerEpochAndOn
}

// TestFormsOfNotifications: the length of a message decides about its form.
func TestFormsOfNotifications(t *testing.T) {
	vote := Notification{State: Leading, Leader: 3, Zxid: 0x500000007, ElectionEpoch: 2, PeerEpoch: 5}
	form := func(v NotificationVersion, config string) Notification {
		n := vote
		n.Version, n.Config = v, config
		return n
	}
	const epoch = "0000000000000005 "
	for _, tt := range []struct {
		name  string
		body  string
		want  Notification
		exact bool // encodes to the same bytes
	}{
		{"28 bytes take the epoch from the zxid", "", form(NotificationBare, ""), true},
		{"40 bytes", epoch + "00000001", form(NotificationPlain, ""), true},
		{"40 bytes with another version", epoch + "00000002", form(NotificationPlain, ""), false},
		{"40 bytes with a negative version", epoch + null, form(NotificationPlain, ""), false},
		{"version 1 with bytes behind it", epoch + "00000001 00000001 78", form(NotificationPlain, ""), false},
		{"version 2", epoch + "00000002 00000001 78", form(NotificationConfig, "x"), true},
		{"version 2 with an empty text", epoch + "00000002 00000000", form(NotificationConfig, ""), true},
		{"version 9 as version 2", epoch + "00000009 00000001 78", form(9, "x"), true},
		{"bytes behind the text", epoch + "00000002 00000001 78 79", form(NotificationConfig, "x"), false},
		{"text that is not UTF-8", epoch + "00000002 00000001 ff", form(NotificationConfig, "\ufffd"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := bytesOf(t, notification("00000002", tt.body))
			n := Notification{Config: "left from an earlier use"}
			c := Decoder(b)
			if n.Code(&c); c.Err() != nil || n != tt.want {
				t.Errorf("%+v, error %v, want %+v", n, c.Err(), tt.want)
			}
			if got := bytes.Equal(Append(nil, &n), b); got != tt.exact {
				t.Errorf("encodes to the same bytes: %v, want %v", got, tt.exact)
			}
			if got := c.Canonical() && c.Left() == 0; got != tt.exact {
				t.Errorf("canonical: %v, want %v", got, tt.exact)
			}
		})
	}
}

// TestBadNotificationsAreRefused: at every length that is no form's.
func TestBadNotificationsAreRefused(t *testing.T) {
	whole := bytesOf(t, notification("00000000", "0000000000000005 00000002 00000004 61626364"))
	for n := range whole {
		if n == notificationBareLen || n == notificationPlainLen {
			continue
		}
		if err := Decode(whole[:n], new(Notification)); !errors.Is(err, ErrShort) {
			t.Errorf("%d bytes: error %v, want %v", n, err, ErrShort)
		}
	}
	for _, tt := range []struct {
		name, message string
		want          error
	}{
		{"state 4", notification("00000004", ""), ErrValue},
		{"state -1", notification(null, ""), ErrValue},
		{"null configuration", notification("00000000", "0000000000000005 00000002"+null), ErrNull},
		{"longest configuration", notification("00000000", "0000000000000005 00000002"+maxInt), ErrShort},
	} {
		if err := Decode(bytesOf(t, tt.message), new(Notification)); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

// TestInitialMessages: forms, addresses and limits.
func TestInitialMessages(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    InitialMessage
		want error
	}{
		{"bare", InitialMessage{Version: InitialBare, Server: 3}, nil},
		{"bare of server 0", InitialMessage{}, nil},
		{"one", InitialMessage{InitialOne, 3, []string{"h:3888"}}, nil},
		{"wildcard", InitialMessage{InitialOne, 3, []string{"0.0.0.0:3888"}}, nil},
		{"IPv6", InitialMessage{InitialOne, 3, []string{"[::1]:3888"}}, nil},
		{"many with one", InitialMessage{InitialMany, 3, []string{"h:1"}}, nil},
		{"many", InitialMessage{InitialMany, 3, []string{"h:1", "[fe80::1%eth0]:2", "i:3"}}, nil},
		{"longest", InitialMessage{InitialOne, 3, []string{strings.Repeat("h", InitialAddressMax-2) + ":1"}}, nil},
		{"one with two", InitialMessage{InitialOne, 3, []string{"h:1", "i:2"}}, ErrValue},
		{"IPv6 without brackets", InitialMessage{InitialOne, 3, []string{"::1:3888"}}, ErrValue},
		{"half a bracket", InitialMessage{InitialOne, 3, []string{"[::1:3888"}}, ErrValue},
		{"no host", InitialMessage{InitialOne, 3, []string{":3888"}}, ErrValue},
		{"no port", InitialMessage{InitialOne, 3, []string{"h:"}}, ErrValue},
		{"port in words", InitialMessage{InitialOne, 3, []string{"h:port"}}, ErrValue},
		{"port with a sign", InitialMessage{InitialOne, 3, []string{"h:+1"}}, ErrValue},
		{"port too large", InitialMessage{InitialOne, 3, []string{"h:65536"}}, ErrValue},
		{"empty among many", InitialMessage{InitialMany, 3, []string{"h:1", ""}}, ErrValue},
		{"other version", InitialMessage{-65534, 3, []string{"h:1"}}, ErrValue},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Encoder(nil)
			tt.m.Code(&c)
			var got InitialMessage
			err := Decode(c.Bytes(), &got)
			if !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			if err == nil && !reflect.DeepEqual(got, tt.m) {
				t.Errorf("%+v, want %+v", got, tt.m)
			}
		})
	}
	tooLong := Append(nil, &InitialMessage{InitialOne, 3, []string{strings.Repeat("h", InitialAddressMax-1) + ":1"}})
	if err := Decode(tooLong, new(InitialMessage)); !errors.Is(err, ErrLength) {
		t.Errorf("address of one byte too many: error %v, want %v", err, ErrLength)
	}
	if err := ReadRecord(bufio.NewReader(bytes.NewReader(tooLong)), new(InitialMessage), InitialMax); !errors.Is(err, ErrLength) {
		t.Errorf("the same from a stream: error %v, want %v", err, ErrLength)
	}
}

// TestAnInitialMessageLeavesTheFramesBehindIt: the stream is read to its end
// and no further.
func TestAnInitialMessageLeavesTheFramesBehindIt(t *testing.T) {
	for _, m := range []*InitialMessage{
		{Version: InitialBare, Server: 3},
		{InitialOne, 3, []string{"h:1"}},
		{InitialMany, 3, []string{"h:1", "i:2"}},
	} {
		n := &Notification{Leader: 3, Version: NotificationPlain}
		r := bufio.NewReader(bytes.NewReader(AppendFrame(Append(nil, m), n)))
		got := new(InitialMessage)
		if err := ReadRecord(r, got, InitialMax); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v, error %v, want %+v", got, err, m)
		}
		b, err := ReadElectionFrame(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		equalBytes(t, b, Append(nil, n))
		if _, err := ReadElectionFrame(r, nil); err != io.EOF {
			t.Errorf("error %v at the end, want EOF", err)
		}
	}
}

// TestQuorumAuthPacketsDecodeAndEncode takes a captured authentication both ways.
func TestQuorumAuthPacketsDecodeAndEncode(t *testing.T) {
	vectors := readElectionFile(t).SASL
	if len(vectors) != 10 {
		t.Errorf("%d packets, want 10", len(vectors))
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			raw := unhex(t, v.Hex)
			if v.Kind == "INITIAL" {
				again, err := electionRoundTrip(v.Kind, raw)
				if err != nil {
					t.Fatal(err)
				}
				equalBytes(t, again, raw)
				return
			}
			var want object
			unmarshal(t, v.Decoded, &want)
			p := new(QuorumAuthPacket)
			if err := ReadRecord(bufio.NewReader(bytes.NewReader(raw)), p, QuorumAuthMax); err != nil {
				t.Fatal(err)
			}
			equalJSON(t, object{"magic": QuorumAuthMagic, "status": p.Status, "tokenLength": len(p.Token), "token": string(p.Token)}, want)
			equalBytes(t, Append(nil, p), raw)
		})
	}
}

// TestBadQuorumAuthPacketsAreRefused.
func TestBadQuorumAuthPacketsAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name, packet string
		want         error
	}{
		{"other magic", "5f2435013501edcd 00000000 00000000", ErrValue},
		{"magic negated", "a0dbcafecafe1234 00000000 00000000", ErrValue},
		{"status 2", "5f2435013501edcc 00000002 00000000", ErrValue},
		{"status -2", "5f2435013501edcc fffffffe 00000000", ErrValue},
		{"token too long", "5f2435013501edcc 00000000 00010000", ErrLength},
		{"token of negative length", "5f2435013501edcc 00000000 fffffffe", ErrLength},
		{"token missing", "5f2435013501edcc 00000000 00000004", io.ErrUnexpectedEOF},
		{"half the magic", "5f243501", io.ErrUnexpectedEOF},
		{"nothing", "", io.EOF},
	} {
		r := bufio.NewReader(bytes.NewReader(bytesOf(t, tt.packet)))
		if err := ReadRecord(r, new(QuorumAuthPacket), QuorumAuthMax); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}
