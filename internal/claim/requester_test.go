package claim

import "testing"

// TestAnswerOfAnEarlierSession: the result of a read counts only in the session in which it was requested.
// A write is settled by its answer whenever that arrives.
func TestAnswerOfAnEarlierSession(t *testing.T) {
	for _, c := range []struct {
		name    string
		write   bool
		between []Event
		counts  bool
	}{
		{"a read, the same session", false, nil, true},
		{"a read, the same session on another connection", false, []Event{Disconnected{}, Attached{Session: 1}}, true},
		{"a read, another session", false, []Event{Attached{Session: 2}}, false},
		{"a read, no session", false, []Event{Expired{}}, false},
		{"a write, the same session", true, nil, true},
		{"a write, another session", true, []Event{Attached{Session: 2}}, true},
	} {
		a, counted := &Requester{}, false
		a.Process(Moment{}, Attached{Session: 1})
		request := a.Ask
		if c.write {
			request = a.Attempt
		}
		request(func([]Result) { counted = true }, Get("/a"))
		for _, ev := range c.between {
			a.Process(Moment{}, ev)
		}
		if a.Process(Moment{}, Reply{N: a.N, Results: []Result{{}}}); counted != c.counts || a.Asked != 0 {
			t.Errorf("%s: the answer counts: %v, the request is outstanding: %v", c.name, counted, a.Asked != 0)
		}
	}
}
