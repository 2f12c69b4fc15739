package claimtest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/transcript"
)

// History writes down what machines are told and what they ask for then. A test compares it with the one that was recorded
// before, so that every change of behaviour shows as a change of a text.
//
// Regenerate with go test PACKAGE -run Recorded -update.
type History struct {
	Long  bool // keep only a checksum, of all lines
	text  bytes.Buffer
	sum   hash.Hash
	lines int
	was   map[string]string // what a machine said of itself last
}

// Told is an event that a history shows with these words.
type Told string

// Event makes Told an event.
func (Told) Event() {}

// historyMax is how many lines a history has, at most.
const historyMax = 250

// Step notes one step of a machine: what it was told, what it wants then, and what it says of itself if that has changed. A nil
// History notes nothing.
func (h *History) Step(at time.Duration, who string, ev claim.Event, rd claim.Ready, state string) {
	if h == nil || h.lines >= historyMax && !h.Long {
		return
	}
	h.line("%8.3fs %s: %s", at.Seconds(), who, eventText(ev))
	if rd.Request != nil {
		h.line("    asks %d in session %v: %s", rd.Request.N, rd.Request.Session, opTexts(rd.Request.Ops))
	}
	if len(rd.Start) > 0 {
		h.line("    starts %s", opTexts(rd.Start))
	}
	if rd.Wake != 0 || rd.KeepAlive {
		h.line("    wakes in %v, keeps the session alive: %v", rd.Wake, rd.KeepAlive)
	}
	for _, o := range rd.Observations {
		h.line("    tells: %v", o)
	}
	if h.was == nil {
		h.was = map[string]string{}
	}
	if h.was[who] != state {
		h.line("    %s", state)
		h.was[who] = state
	}
}

func (h *History) line(format string, values ...any) {
	h.lines++
	if !h.Long {
		fmt.Fprintf(&h.text, format+"\n", values...)
		return
	}
	if h.sum == nil {
		h.sum = sha256.New()
	}
	fmt.Fprintf(h.sum, format+"\n", values...)
}

const (
	shownSeeds = 2  // how many histories are compared line by line
	longSeeds  = 40 // how many are compared by their checksums
)

// Refuses returns one of how many operations the servers refuse in the recorded history of a seed: none in every other one.
func Refuses(seed uint64) int { return int(seed%2) * 30 }

// Recorded plays histories of one kind and compares them with those that were recorded in testdata/history: a few line by line,
// in NAME-SEED.txt, and many longer ones by their checksums, in NAME-sums.txt. If only a checksum differs, write the history of
// that seed with both versions of the program: give play a History that is not Long.
func Recorded(t *testing.T, name string, play func(seed uint64, h *History)) {
	t.Helper()
	var sums bytes.Buffer
	for seed := range uint64(longSeeds) {
		if seed < shownSeeds {
			h := new(History)
			play(seed, h)
			transcript.Match(t, fmt.Sprintf("history/%s-%d.txt", name, seed), h.text.Bytes())
		}
		h := &History{Long: true}
		if play(seed, h); h.lines == 0 {
			t.Fatalf("%s: seed %d: nothing happens", name, seed)
		}
		fmt.Fprintf(&sums, "%d: %d lines, %x\n", seed, h.lines, h.sum.Sum(nil)[:8])
	}
	transcript.Match(t, "history/"+name+"-sums.txt", sums.Bytes())
}

func eventText(ev claim.Event) string {
	switch e := ev.(type) {
	case claim.Reply:
		var all []string
		for _, r := range e.Results {
			all = append(all, resultText(r))
		}
		return fmt.Sprintf("reply %d: %s", e.N, strings.Join(all, "; "))
	case claim.Attached:
		if e.Lease == (claim.Lease{}) {
			return fmt.Sprintf("attached in session %v", e.Session)
		}
	case Told:
		return string(e)
	case claim.Fired:
		return fmt.Sprintf("%v of %s, watched by %d", e.Type, e.Path, e.N)
	}
	if ev == nil {
		return "begins"
	}
	return strings.TrimPrefix(fmt.Sprintf("%T %+v", ev, ev), "claim.")
}

func resultText(r claim.Result) string {
	var all []string
	add := func(what string, v any) {
		if !reflect.ValueOf(v).IsZero() {
			all = append(all, fmt.Sprintf("%s %v", what, v))
		}
	}
	if r.Err != nil {
		all = append(all, r.Err.Error())
	}
	add("failed", r.Failed)
	add("path", r.Path)
	add("data", string(r.Data))
	add("made by", r.Stat.Czxid)
	add("version", r.Stat.Version)
	add("of", r.Stat.EphemeralOwner)
	add("names", r.Names)
	add("changes", r.Changes)
	if len(all) == 0 {
		return "ok"
	}
	return strings.Join(all, ", ")
}

func opTexts(ops []claim.Op) string {
	var all []string
	for _, o := range ops {
		all = append(all, opText(o))
	}
	return strings.Join(all, "; ")
}

func opText(o claim.Op) string {
	text := o.Kind.String() + " " + o.Path
	if o.Data != nil {
		text += fmt.Sprintf(" %q", o.Data)
	}
	if o.Sequential {
		text += " sequential"
	}
	if o.Persistent {
		text += " persistent"
	}
	if o.Like != "" {
		text += " like " + o.Like
	}
	if o.Version != 0 {
		text += fmt.Sprintf(" version %d", o.Version)
	}
	if o.Strict {
		text += " strict"
	}
	if o.Alone {
		text += " alone"
	}
	if o.Since != nil {
		text += fmt.Sprintf(" %v, data of %v, children of %v", o.Since.Zxid, slices.Sorted(slices.Values(o.Since.Paths)), slices.Sorted(slices.Values(o.Since.Parents)))
	}
	if o.Ops != nil {
		text += " [" + opTexts(o.Ops) + "]"
	}
	return text
}
