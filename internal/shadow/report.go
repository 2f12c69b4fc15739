package shadow

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"bellwether/wire"
)

// foundMax is how many differences a report keeps. All are counted and printed when they are found.
const foundMax = 1000

// Found is a difference with its place.
type Found struct {
	Op           string `json:"op"`
	Path         string `json:"path"`
	Zxid         string `json:"zxid"`          // of the old server's reply
	ObserverZxid string `json:"observer_zxid"` // of the observer's answer
	Difference
}

// NewFound returns a difference between the reply to op and the answer to a check.
func NewFound(op wire.OpCode, c *Check, at wire.Zxid, d Difference) Found {
	return Found{op.String(), c.Path, c.Zxid.String(), at.String(), d}
}

func (f Found) String() string {
	return fmt.Sprintf("difference: %s %q zxid %s (observer at %s): %s: old %s, observer %s", f.Op, f.Path, f.Zxid, f.ObserverZxid, f.Field, f.Old, f.Observer)
}

// Tally counts the replies of one operation.
type Tally struct {
	Replies     int64            `json:"replies"`
	Equal       int64            `json:"equal"`
	Differing   int64            `json:"differing"`
	NotCompared map[Reason]int64 `json:"not_compared"`
}

// Report is the outcome of all comparisons.
type Report struct {
	Operations  map[string]*Tally `json:"operations"`
	Connections int64             `json:"connections"`
	NotDecoded  map[Stop]int64    `json:"connections_not_decoded"`
	Differences []Found           `json:"differences"`         // the first ones
	More        int64             `json:"differences_omitted"` // further ones
	Masked      []string          `json:"masked"`
}

// Masked says what is never compared, because it may differ between two servers of one ensemble.
var Masked = []string{
	"the header's xid, and the zxid of reads: the observer answers later",
	"session ids, passwords and timeouts: the observer has sessions of its own",
	"the zxid of watch events, which servers before 3.9 do not send; the state in them",
	"removals of watches that a client makes itself without asking a server",
	"who a client is after a login by SASL, and with a certificate that shadow does not have: only what the answers say is compared",
	"the order of children; syncs and pings",
	"the data of " + quotaPath + "/…/zookeeper_stats at different zxids, and after a client writes it: servers count without a transaction",
	"addresses in whoAmI: each server sees its own side of a connection",
	configPath + ": each server makes it of its own configuration",
	"after setACL, duplicate entries and hashes of digests that the client may not see",
}

// NewReport returns an empty report.
func NewReport() *Report {
	return &Report{Operations: map[string]*Tally{}, NotDecoded: map[Stop]int64{}, Differences: []Found{}, Masked: Masked}
}

// Count counts a reply: as different if differences are given, as not compared if there is a reason, else as equal.
func (r *Report) Count(op wire.OpCode, why Reason, found []Found) {
	t := r.tally(op)
	t.Replies++
	switch {
	case len(found) > 0:
		t.Differing++
	case why != "":
		t.NotCompared[why]++
	default:
		t.Equal++
	}
	kept := min(len(found), foundMax-len(r.Differences))
	r.Differences = append(r.Differences, found[:kept]...)
	r.More += int64(len(found) - kept)
}

func (r *Report) tally(op wire.OpCode) *Tally {
	name := op.String()
	if _, known := r.Operations[name]; !known && strings.HasPrefix(name, "op ") {
		name = "unknown" // clients choose the number
	}
	t := r.Operations[name]
	if t == nil {
		t = &Tally{NotCompared: map[Reason]int64{}}
		r.Operations[name] = t
	}
	return t
}

// opEvent is the operation under which watch events are counted.
const opEvent wire.OpCode = 0

// CountEvent counts a watch event of the old server, or one that only the observer has sent.
func (r *Report) CountEvent(why Reason, found ...Found) { r.Count(opEvent, why, found) }

// NewFoundEvent returns a difference between watch events before the reply with zxid z.
func NewFoundEvent(e *EventResult, z wire.Zxid) Found {
	return Found{opEvent.String(), e.Path, z.String(), e.At.String(), *e.Difference}
}

// Clone returns a copy that does not change with r.
func (r *Report) Clone() *Report {
	c := *r
	c.Operations = map[string]*Tally{}
	for name, t := range r.Operations {
		copied := *t
		copied.NotCompared = maps.Clone(t.NotCompared)
		c.Operations[name] = &copied
	}
	c.NotDecoded = maps.Clone(r.NotDecoded)
	c.Differences = slices.Clone(r.Differences)
	return &c
}

// Differing returns how many replies differ.
func (r *Report) Differing() int64 { return r.sum().Differing }

// sum adds the operations.
func (r *Report) sum() *Tally {
	all := &Tally{NotCompared: map[Reason]int64{}}
	for _, t := range r.Operations {
		all.Replies += t.Replies
		all.Equal += t.Equal
		all.Differing += t.Differing
		for why, n := range t.NotCompared {
			all.NotCompared[why] += n
		}
	}
	return all
}

func total[K comparable](m map[K]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}

// Print writes the report as text. It does not repeat the differences, which were printed when they were found.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "OPERATION\tREPLIES\tEQUAL\tDIFFERING\tNOT COMPARED\t")
	row := func(name string, t *Tally) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t\n", name, t.Replies, t.Equal, t.Differing, total(t.NotCompared))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Operations)) {
		row(name, r.Operations[name])
	}
	all := r.sum()
	row("all", all)
	table.Flush()
	counts(&b, "not compared", all.NotCompared)
	fmt.Fprintf(&b, "connections: %d\n", r.Connections)
	counts(&b, "connections not decoded", r.NotDecoded)
	for _, m := range r.Masked {
		fmt.Fprintf(&b, "never compared: %s\n", m)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// counts prints a line for each reason.
func counts[K ~string](b *strings.Builder, what string, m map[K]int64) {
	for _, why := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(b, "%s: %d: %s\n", what, m[why], why)
	}
}
