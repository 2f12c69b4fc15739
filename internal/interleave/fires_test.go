package interleave

import (
	"strings"
	"testing"

	"bellwether/internal/store"
	"bellwether/wire"
)

// story builds what clients have done, step by step.
type story struct {
	clock   int
	clients []*client
}

// replied adds a request of a client and its reply, one after the other.
func (s *story) replied(c int, q request, z wire.Zxid) *request {
	q.sent = s.clock + 1
	s.clock += 2
	q.answered, q.reply.Zxid = s.clock, z
	on := s.clients[c]
	on.requests = append(on.requests, &q)
	on.log = append(on.log, received{reply: &q, zxid: z})
	return &q
}

// event adds an event that a client receives.
func (s *story) event(c int, kind wire.EventType, path string, z wire.Zxid) {
	s.clock++
	s.clients[c].log = append(s.clients[c].log, received{event: event{kind, path}, zxid: z})
}

// watch adds an exists of /a with a watch, which finds nothing at zxid 1.
func (s *story) watch(c int) {
	s.replied(c, request{op: wire.OpExists, path: "/a", watch: true, reply: wire.ReplyHeader{Err: wire.ErrNoNode}}, 1)
}

func create(path string) request { return request{op: wire.OpCreate, path: path, data: "x"} }

// look is a read that shows nothing that changes.
func look() request { return request{op: wire.OpExists, path: "/"} }

// TestEachRuleCanBeBroken: each rule is broken by what it forbids, and not by a correct run.
func TestEachRuleCanBeBroken(t *testing.T) {
	for _, c := range []struct {
		what, rule string // no rule: nothing is broken
		tell       func(s *story)
	}{
		{"an event between the watch and a later read", "", func(s *story) {
			s.watch(0)
			s.replied(1, create("/a"), 2)
			s.event(0, wire.EventNodeCreated, "/a", 2)
			s.replied(0, look(), 2)
		}},
		{"persistent watches get each event, those of below only if they are recursive", "", func(s *story) {
			s.replied(0, request{op: wire.OpAddWatch, path: "/a", watch: true}, 1)
			s.replied(1, request{op: wire.OpAddWatch, path: "/a", watch: true, recursive: true}, 1)
			s.replied(2, create("/a"), 2)
			s.replied(2, create("/a/x"), 3)
			s.event(0, wire.EventNodeCreated, "/a", 2)
			s.event(0, wire.EventNodeChildrenChanged, "/a", 3)
			s.event(1, wire.EventNodeCreated, "/a", 2)
			s.event(1, wire.EventNodeCreated, "/a/x", 3)
			s.replied(0, look(), 3)
			s.replied(1, look(), 3)
		}},
		{"an ephemeral ends with its session", "", func(s *story) {
			s.replied(1, request{op: wire.OpCreate, path: "/a", ephemeral: true}, 1)
			s.replied(0, request{op: wire.OpExists, path: "/a", watch: true}, 1)
			s.replied(1, request{op: wire.OpCloseSession}, 2)
			s.event(0, wire.EventNodeDeleted, "/a", 2)
			s.replied(0, look(), 2)
		}},
		{"a watch whose event never comes", "EventFirst", func(s *story) {
			s.watch(0)
			s.replied(1, create("/a"), 2)
			s.replied(0, look(), 3)
		}},
		{"a reply before the event that it shows", "EventFirst", func(s *story) {
			s.watch(0)
			s.replied(1, create("/a"), 2)
			s.replied(0, look(), 2)
			s.event(0, wire.EventNodeCreated, "/a", 2)
		}},
		{"an event before the reply that confirms its watch", "OwnEvents", func(s *story) {
			s.replied(1, create("/a"), 2)
			s.event(0, wire.EventNodeCreated, "/a", 2)
			s.watch(0)
		}},
		{"an event that comes twice", "OwnEvents", func(s *story) {
			s.watch(0)
			s.replied(1, create("/a"), 2)
			s.event(0, wire.EventNodeCreated, "/a", 2)
			s.event(0, wire.EventNodeCreated, "/a", 2)
		}},
		{"events in the wrong order", "EventFirst", func(s *story) {
			s.replied(0, request{op: wire.OpAddWatch, path: "/a", watch: true}, 1)
			s.replied(1, create("/a"), 2)
			s.replied(1, request{op: wire.OpSetData, path: "/a"}, 3)
			s.event(0, wire.EventNodeDataChanged, "/a", 3)
			s.event(0, wire.EventNodeCreated, "/a", 2)
		}},
		{"a connection that goes back", "Forward", func(s *story) {
			s.replied(0, look(), 2)
			s.replied(0, look(), 1)
		}},
		{"two writes with one zxid", "OneZxid", func(s *story) {
			s.replied(0, create("/a"), 2)
			s.replied(1, create("/b"), 2)
		}},
		{"a read that misses a write", "Fresh", func(s *story) {
			s.replied(0, create("/a"), 2)
			s.replied(1, look(), 1)
		}},
		{"data of a later zxid", "Shown", func(s *story) {
			s.replied(0, create("/a"), 2)
			s.replied(1, request{op: wire.OpGetData, path: "/a", got: "y"}, 2)
		}},
		{"a znode that does not exist yet", "Shown", func(s *story) {
			s.replied(0, request{op: wire.OpExists, path: "/a"}, 1)
		}},
		{"a request without a reply", "Answered", func(s *story) {
			s.clients[0].waiting = append(s.clients[0].waiting, new(request))
		}},
	} {
		s := &story{clients: []*client{{number: 1}, {number: 2}, {number: 3}}}
		c.tell(s)
		got := ""
		for _, f := range historyOf(s.clients).check() {
			got += f.what + "\n"
		}
		if c.rule == "" && got != "" || c.rule != "" && !strings.Contains(got, c.rule+":") {
			t.Errorf("%s: %q, want the rule %q", c.what, got, c.rule)
		}
	}
}

// TestLossIsReported: a disk that lacks a transaction that a client has seen breaks the rule
// Durable, and so does one that has something else.
func TestLossIsReported(t *testing.T) {
	s := &story{clients: []*client{{number: 1}}}
	h := historyOf(s.clients)
	if got := h.checkImage(&image{fs: store.NewMem(1)}, 0); len(got) > 0 {
		t.Errorf("an empty disk of an empty history: %v", got)
	}
	if got := h.checkImage(&image{acked: 2, fs: store.NewMem(1)}, 0); len(got) == 0 {
		t.Error("a lost transaction is not reported")
	}
	s.replied(0, create("/a"), 0)
	if got := historyOf(s.clients).checkImage(&image{fs: store.NewMem(1)}, 0); len(got) == 0 {
		t.Error("lost data is not reported")
	}
}
