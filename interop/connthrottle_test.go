package interop

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/wire"
)

// throttled is a server with a connection throttle, and what was observed.
type throttled struct {
	t     *testing.T
	s     *target.Server
	notes []string
}

// ask opens a connection and requests a new session or, if session is not nil, to resume that
// session. It notes the outcome. It returns the answer; nil: the server closed the connection
// without one.
func (r *throttled) ask(session *wire.ConnectResponse) *wire.ConnectResponse {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.s.Addr)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(behaviourTimeout))
	q := wire.ConnectRequest{TimeoutMS: 30_000, Password: make([]byte, wire.PasswordLen), HasReadOnly: true}
	if session != nil {
		q.Session, q.Password = session.Session, session.Password
	}
	if _, err := conn.Write(wire.AppendFrame(nil, &q)); err != nil {
		r.t.Fatal(err)
	}
	frame, err := wire.ReadFrame(conn, nil, wire.FrameMax)
	var answer wire.ConnectResponse
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		r.notes = append(r.notes, "closed without an answer")
		return nil
	case err != nil:
		r.t.Fatalf("%s: %v", r.s.Kind, err)
	case wire.Decode(frame, &answer) != nil:
		r.t.Fatalf("%s: %x", r.s.Kind, frame)
	}
	r.notes = append(r.notes, fmt.Sprintf("answered, with a session: %v", answer.Session != 0))
	return &answer
}

// figures notes what mntr shows about the throttle.
func (r *throttled) figures() {
	text := wordAnswer(r.t, r.s, []string{"mntr"})
	for _, name := range []string{"connection_rejected", "connection_request_count", "connection_drop_probability",
		"cnt_connection_token_deficit", "max_connection_token_deficit", "sum_connection_token_deficit", "avg_connection_token_deficit"} {
		_, value, found := strings.Cut(text, "zk_"+name+"\t")
		if !found {
			r.t.Errorf("%s: mntr does not show %s", r.s.Kind, name)
		}
		value, _, _ = strings.Cut(value, "\n")
		r.notes = append(r.notes, name+" "+value)
	}
}

// endless is a time between refills that is longer than the test, in ms.
const endless = "3600000"

// TestConnectionThrottleIsTheSame shows that the connection throttles of both kinds of server make the
// same decisions and show the same figures, in the same sequence of connections.
func TestConnectionThrottleIsTheSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		keys map[string]string // the keys, without connection_throttle_
		run  func(r *throttled)
	}{
		{"tokens", map[string]string{"tokens": "3", "fill_time": endless}, func(r *throttled) {
			first := r.ask(nil)
			for range 2 {
				r.ask(first)
			}
			r.ask(first)
			r.ask(nil)
			r.figures()
		}},
		{"off", map[string]string{"tokens": "0", "fill_time": endless, "freeze_time": "0", "drop_increase": "1"}, func(r *throttled) {
			r.ask(nil)
			r.ask(nil)
			r.figures()
		}},
		{"weights", map[string]string{"tokens": "3", "fill_time": endless, "weight_enabled": "true"}, func(r *throttled) {
			first := r.ask(nil) // costs 3 of 9 tokens
			r.ask(first)        // costs 2 of the remaining 6
			r.ask(nil)          // costs 3 of the remaining 4
			r.ask(first)        // costs 2, and only 1 remains
			r.ask(nil)
			r.figures()
		}},
		{"weights of its own", map[string]string{"tokens": "2", "fill_time": endless, "weight_enabled": "true",
			"global_session_weight": "4", "local_session_weight": "5", "renew_session_weight": "1"}, func(r *throttled) {
			first := r.ask(nil) // costs 5 of 10 tokens, because a local session costs 5
			r.ask(first)        // costs 5 as well
			r.ask(first)
			r.figures()
		}},
		{"freeze time", map[string]string{"tokens": "1", "fill_time": "2000", "fill_count": "5", "freeze_time": "0",
			"drop_increase": "1", "drop_decrease": "1"}, func(r *throttled) {
			r.ask(nil)
			for asked := time.Now(); time.Since(asked) < 5*time.Millisecond; { // longer than the freeze time
				wordAnswer(r.t, r.s, []string{"ruok"})
			}
			r.ask(nil) // no token, so the drop probability rises to 1
			r.figures()
			for r.ask(nil) == nil { // until the token is back and the probability falls to 0
				r.notes = r.notes[:len(r.notes)-1]
			}
			r.t.Log(r.s.Kind, "admits connections again")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			keys := map[string]string{}
			for name, value := range c.keys {
				keys["connection_throttle_"+name] = value
			}
			saw := map[target.Kind][]string{}
			for _, kind := range target.Kinds() {
				r := &throttled{t: t, s: target.StartFor(t, kind, target.Options{Extra: maps.Clone(keys)})}
				c.run(r)
				saw[kind] = r.notes
			}
			t.Log(strings.Join(saw[target.Bellwether], "\n"))
			if a, b := saw[target.Apache], saw[target.Bellwether]; len(saw) == 2 && !slices.Equal(a, b) {
				t.Errorf("ZooKeeper:\n%s\nBellwether:\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
			}
		})
	}
}
