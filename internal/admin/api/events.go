package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"bellwether/internal/admin/access"
	"bellwether/internal/admin/view"
)

const (
	eventEvery = time.Second      // how often the figures are compared with those of the last event
	aliveEvery = 15 * time.Second // after this time without an event, a comment shows that the stream is alive
	writeMax   = 10 * time.Second // how long a client may take to accept an event
)

// events serves a stream of events until the client or the server ends it, or the viewer is signed out.
func (a *API) events(w http.ResponseWriter, r *http.Request) {
	defer a.streams.Add(-1)
	most := a.srv.Config().Admin.EventStreams
	if a.streams.Add(1) > int64(most) {
		w.Header().Set("Retry-After", "10")
		writeError(w, busy, &view.Error{What: fmt.Sprintf("%d event streams are open already, which is the limit (admin.maxEventStreams)", most), Where: "/v1/events", Do: "close other pages, and try again"})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // the client sends nothing more, and the stream has no end
	tick := time.NewTicker(eventEvery)
	defer tick.Stop()
	var last []byte
	var sent time.Time
	for access.Still(r.Context()) {
		e := a.view.Ensemble(r.Context())
		now := figures(e)
		text := []byte(": alive\n\n")
		switch {
		case !bytes.Equal(now, last):
			text = fmt.Appendf(nil, "event: ensemble\ndata: %s\n\n", encoded(e))
		case time.Since(sent) < aliveEvery:
			text = nil
		}
		if text != nil {
			_ = out.SetWriteDeadline(time.Now().Add(writeMax)) // the connections of some tests have no deadlines
			if _, err := w.Write(text); err != nil || out.Flush() != nil {
				return
			}
			last, sent = now, time.Now()
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// figures returns the data of an event without the time of reading, for comparison.
func figures(e *view.Ensemble) []byte {
	timeless := *e
	timeless.At = time.Time{}
	return encoded(&timeless)
}

func encoded(e *view.Ensemble) []byte {
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // unreachable: values of this type can always be encoded
	}
	return b
}
