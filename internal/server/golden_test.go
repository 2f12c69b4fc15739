package server

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"bellwether/wire"
)

// TestGoldenConversations repeats recorded conversations of Apache ZooKeeper 3.8.0. The
// answers must be equal byte for byte, except for what depends on the run.
func TestGoldenConversations(t *testing.T) {
	text, err := os.ReadFile("testdata/transcripts.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, story := range strings.Split(string(text), "\n= ")[1:] {
		name, lines, _ := strings.Cut(story, "\n")
		t.Run(name, func(t *testing.T) { converse(t, name, lines) })
	}
}

func converse(t *testing.T, name, lines string) {
	s := start(t, Options{})
	setup := s.connect()
	prepare(setup, name)
	c := s.dial()
	if name != "connect" && name != "refused session" {
		c.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16), HasReadOnly: true})
	}
	for line := range strings.Lines(lines) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case ">":
			b, err := hex.DecodeString(strings.ReplaceAll(rest, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			c.write(b)
		case "<":
			got := hex.EncodeToString(frameOf(c.frame()))
			if want := strings.ReplaceAll(rest, " ", ""); !matches(got, want) {
				t.Fatalf("answer\n%s\nwant\n%s", got, want)
			}
		case "!":
			setup.must(wire.OpSetData, &wire.SetDataRequest{Path: "/g", Version: -1}, nil)
		case "end":
			c.closed()
		}
	}
}

// prepare makes the tree with which a conversation begins.
func prepare(c *client, name string) {
	switch name {
	case "getData with watch, and its event":
		c.create("/g", "hello")
		for i := range 5 {
			c.create(fmt.Sprintf("/g/%d", i), "")
		}
	case "setData with a bad version", "multi with one failing operation":
		c.create("/g", "")
		c.must(wire.OpSetData, &wire.SetDataRequest{Path: "/g", Version: 0}, nil)
	default:
		c.create("/g", "")
	}
}

// matches compares hex digits. A dot matches any digit.
func matches(got, want string) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		if want[i] != '.' && got[i] != want[i] {
			return false
		}
	}
	return true
}
