package elog

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

// recorded returns the record of an election that was decided by votes.
func recorded() Election {
	return From(&election.Record{
		Server: 2, Why: "started", Own: election.Vote{Leader: 2, Zxid: 0x100000001, PeerEpoch: 1},
		Votes:     []election.HeardVote{{AtMS: 3, From: 3, Vote: election.Vote{Leader: 3, Zxid: 0x100000005, PeerEpoch: 1}, Round: 4}},
		Changes:   []election.OwnVote{{AtMS: 0, Round: 4}, {AtMS: 3, Round: 4, Vote: election.Vote{Leader: 3}, Heard: 0}},
		Waits:     []election.Wait{{AtMS: 3, MaxMS: 5}},
		SentVotes: []election.SentVote{{AtMS: 3, To: []ensemble.ServerID{1, 3}, Vote: election.Vote{Leader: 3}, Round: 4, Heard: 1}},
		Decision: election.Decision{State: peerwire.Following, Vote: election.Vote{Leader: 3, Zxid: 0x100000005, PeerEpoch: 1}, Round: 4,
			Ending: election.Agreed, Supporters: []ensemble.ServerID{2, 3}},
		Phase: election.Serve, Epoch: 2,
	}, time.Unix(1_700_000_000, 5000))
}

// TestDecodeReadsWhatIsPrinted: Decode returns the same record that another server printed.
func TestDecodeReadsWhatIsPrinted(t *testing.T) {
	want := []Election{recorded()}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(text)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, got, want)
	}
	if e := want[0]; e.WaitsAtMS[0] != 3 || e.SentVotes[0].To[1] != 3 || e.Round != 4 || e.Reason == "" || e.Changes[1].Vote.Leader != 3 {
		t.Errorf("%+v", e)
	}
}

// TestDecodeRefusesOtherTexts: the error says what the server printed instead of a record.
func TestDecodeRefusesOtherTexts(t *testing.T) {
	for text, want := range map[string]string{
		"": "no answer",
		"elog is not executed because it is not in the whitelist.\n": "it: elog is not executed",
		"[]":                               "no election is recorded",
		`[{"server":"x"}]`:                 "does not show it",
		strings.Repeat(" ", TextMax) + "1": "more than the limit",
	} {
		if _, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// TestDecodeLimitsLists: Decode keeps the beginning of a list that is too long, and counts
// the votes that it leaves out.
func TestDecodeLimitsLists(t *testing.T) {
	e := recorded()
	for range 2 * listMax {
		e.Votes = append(e.Votes, e.Votes[0])
	}
	e.Why, e.SentVotes[0].To = strings.Repeat("é\x00", lineMax), make([]ensemble.ServerID, 2*toMax)
	text, _ := json.Marshal(append(make([]Election, 2*electionsMax), e))
	all, err := Decode(text)
	if err != nil || len(all) != electionsMax {
		t.Fatalf("%d elections, %v", len(all), err)
	}
	e = all[electionsMax-1]
	if len(e.Votes) != listMax || e.Dropped != listMax+1 || len(e.SentVotes[0].To) != toMax || e.SentDropped != toMax || len(e.Why) > lineMax {
		t.Errorf("%d votes, %d dropped, %d receivers, %d dropped, %d bytes", len(e.Votes), e.Dropped, len(e.SentVotes[0].To), e.SentDropped, len(e.Why))
	}
}

// FuzzDecode: whatever another server prints, the result is within the limits and can be
// printed again.
func FuzzDecode(f *testing.F) {
	text, _ := json.Marshal([]Election{recorded()})
	f.Add(text)
	f.Add([]byte(`[{"server":-1,"began":"0001-01-01T00:00:00Z","why":"\u202e","votes":[{"at_ms":-9223372036854775808}],"waits_ms":[9223372036854775807]}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := Decode(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if len(e.Votes) > listMax || len(e.Why) > lineMax || e.LookMS < 0 || e.LookMS > msMax || !utf8.ValidString(e.Why) || strings.ContainsRune(e.Why, 0) {
				t.Errorf("beyond the limits: %.2000q", again)
			}
		}
		if _, err := Decode(again); err != nil {
			t.Error(err)
		}
	})
}
