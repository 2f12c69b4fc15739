package trace

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"bellwether/internal/ensemble"
)

// Trace describes one request by its stages. Numbers that a program in JavaScript could not
// hold are text in hex.
type Trace struct {
	Number   uint64            `json:"number"` // counts the traces of a server, from 1
	Server   ensemble.ServerID `json:"server"`
	Session  string            `json:"session"`
	Cxid     int32             `json:"cxid"`
	Op       string            `json:"op"`
	Path     string            `json:"path,omitempty"`
	Zxid     string            `json:"zxid"`
	Err      int32             `json:"err"`             // the code of the protocol; 0: none
	Error    string            `json:"error,omitempty"` // its text
	Client   string            `json:"client,omitempty"`
	Requests int64             `json:"requests"` // more than 1: this many reads arrived together, and the other fields describe the last one
	// Forwarded: the request belongs to a client of a learner, and this is the leader's part.
	Forwarded bool              `json:"forwarded"`
	Began     time.Time         `json:"began"`
	TookNS    int64             `json:"took_ns"`
	Stages    []Stage           `json:"stages"`
	Acks      []Ack             `json:"acks,omitempty"`
	Slowest   string            `json:"slowest"`
	Peer      ensemble.ServerID `json:"peer,omitempty"` // the server for whose answer the slowest stage waited; 0: none
}

// Stage is a stage of a request. Its times count from Began.
type Stage struct {
	Name   string `json:"name"`
	FromNS int64  `json:"from_ns"`
	ToNS   int64  `json:"to_ns"`
}

// Ack says after which time, counted from Began, a server had the transaction on its disk.
type Ack struct {
	Server  ensemble.ServerID `json:"server"`
	AfterNS int64             `json:"after_ns"`
}

// Limits on what a server prints. A server of this version stays below them.
const (
	// TextMax is the greatest length of an answer to the word trac, in bytes.
	TextMax   = 256 << 20
	tracesMax = 100_000
	listMax   = 64 // stages and acks of a trace
)

// Decode reads the answer to the word trac.
func Decode(text []byte) ([]Trace, error) {
	if len(text) > TextMax {
		return nil, fmt.Errorf("the traces have %d bytes, more than the limit of %d", len(text), TextMax)
	}
	var all []Trace
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("the server does not show its traces (add trac to 4lw.commands.whitelist, and set requestTrace.enabled=true): %.100q", strings.TrimSpace(string(text[:min(len(text), 100)])))
	}
	all = all[max(0, len(all)-tracesMax):]
	for i := range all {
		t := &all[i]
		t.Stages, t.Acks = t.Stages[:min(len(t.Stages), listMax)], t.Acks[:min(len(t.Acks), listMax)]
	}
	return all, nil
}
