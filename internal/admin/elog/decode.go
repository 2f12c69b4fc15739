package elog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// Limits on what another server prints. A server of this version stays below them.
const (
	// TextMax is the greatest length of an answer to the word elog, in bytes.
	TextMax      = 16 << 20
	electionsMax = 128
	listMax      = 512     // entries of each list in an election
	toMax        = 64      // receivers of a sent vote
	wordMax      = 40      // bytes of a state, a zxid or a phase
	lineMax      = 400     // bytes of a line
	storyMax     = 1 << 16 // bytes of the explanation
	msMax        = 1 << 42 // more than a century
)

// Decode reads the answer to the word elog. If there are more elections than the limit, it
// keeps the newest; if a list is longer than the limit, it keeps its beginning.
func Decode(text []byte) ([]Election, error) {
	if len(text) > TextMax {
		return nil, fmt.Errorf("the record of elections has %d bytes, more than the limit of %d", len(text), TextMax)
	}
	var all []Election
	if err := json.Unmarshal(text, &all); err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(clean(string(text[:min(len(text), lineMax)]), lineMax)), "\n")
		if said == "" {
			said = "no answer"
		}
		return nil, fmt.Errorf("the server has no record of elections, or does not show it: %s", said)
	}
	if len(all) == 0 {
		return nil, errors.New("no election is recorded; a standalone server has none")
	}
	all = all[max(0, len(all)-electionsMax):]
	for i := range all {
		all[i].limit()
	}
	return all, nil
}

// limit brings an election within the limits.
func (e *Election) limit() {
	e.Began = plausible(e.Began)
	e.Why, e.Reason, e.Ended, e.Line = clean(e.Why, lineMax), clean(e.Reason, lineMax), clean(e.Ended, lineMax), clean(e.Line, lineMax)
	e.Ending, e.State, e.Phase, e.Explanation = clean(e.Ending, lineMax), clean(e.State, wordMax), clean(e.Phase, wordMax), clean(e.Explanation, storyMax)
	e.Own.limit()
	for _, n := range []*int64{&e.LookMS, &e.DiscoverMS, &e.SynchroniseMS, &e.ServeMS} {
		*n = ms(*n)
	}
	e.Sent, e.Dropped, e.SentDropped = max(e.Sent, 0), max(e.Dropped, 0), max(e.SentDropped, 0)
	e.Dropped += max(0, len(e.Votes)-listMax)
	e.SentDropped += max(0, len(e.SentVotes)-listMax)
	e.Rounds, e.Supporters = first[wire.Epoch](e.Rounds, listMax), first[ensemble.ServerID](e.Supporters, toMax)
	e.WaitsMS, e.WaitsAtMS = times(e.WaitsMS), times(e.WaitsAtMS)
	e.Votes, e.Changes, e.SentVotes = first(e.Votes, listMax), first(e.Changes, listMax), first(e.SentVotes, listMax)
	for i := range e.Votes {
		v := &e.Votes[i]
		v.AtMS, v.State, v.Verdict = ms(v.AtMS), clean(v.State, wordMax), clean(v.Verdict, lineMax)
		v.Vote.limit()
	}
	for i := range e.Changes {
		e.Changes[i].AtMS = ms(e.Changes[i].AtMS)
		e.Changes[i].Vote.limit()
	}
	for i := range e.SentVotes {
		s := &e.SentVotes[i]
		s.AtMS, s.State = ms(s.AtMS), clean(s.State, wordMax)
		e.SentDropped += max(0, len(s.To)-toMax)
		s.To = first(s.To, toMax)
		s.Vote.limit()
	}
}

func (v *Vote) limit() { v.Zxid = clean(v.Zxid, wordMax) }

func first[T any](list []T, n int) []T { return list[:min(n, len(list))] }

func times(list []int64) []int64 {
	list = first(list, listMax)
	for i := range list {
		list[i] = ms(list[i])
	}
	return list
}

// ms brings a time within an election into a range in which sums cannot overflow.
func ms(n int64) int64 { return min(max(n, 0), msMax) }

// plausible returns a time that can be printed as RFC 3339 and in milliseconds.
func plausible(t time.Time) time.Time {
	if y := t.Year(); y < 1970 || y > 9000 {
		return time.Unix(0, 0).UTC()
	}
	return t.UTC()
}

// clean replaces everything in a text that is not a printable character of UTF-8 or a line end
// by "?", and cuts the text to a number of bytes.
func clean(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError || r == 0xfffe || r == 0xffff ||
			r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 { // marks that change the direction of the text
			return '?'
		}
		return r
	}, s)
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
