package theatre

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/admin/elog"
	"bellwether/internal/ensemble"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the drawings in testdata")

// read returns the records of a file.
func read(t testing.TB, file string) []elog.Election {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	records, err := elog.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// TestDrawings compares the drawings of recorded elections with testdata/*.svg, which are
// to be looked at. The records are those of real ensembles. Draw them anew with
// go test ./internal/admin/theatre -run Drawings -update
func TestDrawings(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.json")
	if len(files) < 5 {
		t.Fatalf("records: %v", files)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			all := Elections(read(t, file))
			if len(all) != 1 {
				t.Fatalf("%d elections, want 1", len(all))
			}
			d := all[0].Draw("drawing", true)
			check(t, &all[0], d)
			golden := strings.TrimSuffix(file, ".json") + ".svg"
			if *update {
				if err := os.WriteFile(golden, []byte(d.SVG), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d.SVG != string(want) {
				t.Errorf("the drawing differs from %s: write it with -update and look at it", golden)
			}
		})
	}
}

// check fails if a drawing is not well-formed, if texts overlap, or if votes are missing.
func check(t interface{ Errorf(string, ...any) }, e *Election, d Drawing) {
	if err := wellFormed(d.SVG); err != nil {
		t.Errorf("not well-formed: %v", err)
	}
	for i, a := range d.texts {
		for _, b := range d.texts[i+1:] {
			if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h {
				t.Errorf("%q at %.0f,%.0f covers %q at %.0f,%.0f", a.text, a.x, a.y, b.text, b.x, b.y)
			}
		}
	}
	if n := votes(e); d.drawn+d.LeftOut != n {
		t.Errorf("%d votes are drawn and %d left out, of %d", d.drawn, d.LeftOut, n)
	}
}

func wellFormed(text string) error {
	dec := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// votes counts the recorded votes of an election; one that both ends recorded counts once.
func votes(e *Election) (n int) {
	sent := map[string]int{}
	for _, r := range e.records {
		for _, s := range r.SentVotes {
			for _, to := range s.To {
				sent[fmt.Sprint(r.Server, to, s.State, s.Round, s.Vote)]++
				n++
			}
		}
	}
	for _, r := range e.records {
		for _, v := range r.Votes {
			key := fmt.Sprint(v.From, r.Server, v.State, v.Round, v.Vote)
			if sent[key]--; sent[key] < 0 {
				n++
			}
		}
	}
	return n
}

// drawVote, drawElection and drawRecords make records as other servers could print them,
// sensible or not.
func drawVote(t *rapid.T) elog.Vote {
	return elog.Vote{
		Leader: ensemble.ServerID(rapid.Int64Range(1, 9).Draw(t, "leader")),
		Zxid:   rapid.SampledFrom([]string{"0x0", "0x10000000f", "0x7fffffffffffffff", noHistory, "", "<&\"\x00>"}).Draw(t, "zxid"),
		Epoch:  wireEpoch(rapid.Int64Range(-1, 3).Draw(t, "epoch")),
	}
}

var anyState = rapid.SampledFrom([]string{looking, looking, looking, following, leading, "OBSERVING", "?"})

func drawElection(t *rapid.T, server ensemble.ServerID) elog.Election {
	ms := rapid.OneOf(rapid.Int64Range(0, 30), rapid.Int64Range(0, 1<<42))
	id := rapid.Custom(func(t *rapid.T) ensemble.ServerID { return ensemble.ServerID(rapid.Int64Range(1, 9).Draw(t, "id")) })
	round := rapid.Custom(func(t *rapid.T) wireEpoch { return wireEpoch(rapid.Int64Range(1, 3).Draw(t, "round")) })
	leader := id.Draw(t, "leader")
	e := elog.Election{
		Server: server, Began: time.UnixMilli(1_700_000_000_000 + rapid.Int64Range(0, 20).Draw(t, "began")), Why: rapid.String().Draw(t, "why"),
		Own: drawVote(t), Leader: &leader, State: anyState.Draw(t, "state"), Epoch: wireEpoch(rapid.Int64Range(0, 2).Draw(t, "epoch")),
		Phase:  rapid.SampledFrom([]string{"look", "discover", "synchronise", "serve", "over"}).Draw(t, "phase"),
		Ending: rapid.SampledFrom([]string{"every voter that is up voted the same", "a quorum follows this leader", "a new election was begun", "<b>"}).Draw(t, "ending"),
		LookMS: ms.Draw(t, "look"), DiscoverMS: ms.Draw(t, "discover"), SynchroniseMS: ms.Draw(t, "synchronise"), Ended: rapid.String().Draw(t, "ended"),
	}
	times := rapid.SliceOfN(rapid.Int64Range(0, 30), 0, 12)
	for _, at := range times.Draw(t, "heard") {
		e.Votes = append(e.Votes, elog.Heard{AtMS: at, From: id.Draw(t, "from"), State: anyState.Draw(t, "said"), Round: round.Draw(t, "round"), Vote: drawVote(t),
			Verdict: rapid.SampledFrom([]string{"better, adopted", "worse", "]]>"}).Draw(t, "verdict")})
	}
	for _, at := range times.Draw(t, "changes") {
		e.Changes = append(e.Changes, elog.Change{AtMS: at, Round: round.Draw(t, "round"), Vote: drawVote(t), Heard: rapid.IntRange(-1, 12).Draw(t, "after")})
	}
	for _, at := range times.Draw(t, "sent") {
		e.SentVotes = append(e.SentVotes, elog.Sent{AtMS: at, To: rapid.SliceOfN(id, 0, 9).Draw(t, "to"), State: anyState.Draw(t, "said"),
			Round: round.Draw(t, "round"), Vote: drawVote(t), Heard: rapid.IntRange(-1, 12).Draw(t, "after")})
	}
	e.WaitsAtMS, e.WaitsMS = times.Draw(t, "waits"), times.Draw(t, "lengths")
	return e
}

// TestAnyRecordsCanBeDrawn: whatever up to nine servers recorded, the drawing is
// well-formed, no text covers another one, and each vote is drawn or counted as left out.
func TestAnyRecordsCanBeDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records []elog.Election
		for id := range rapid.IntRange(1, 9).Draw(t, "servers") {
			records = append(records, drawElection(t, ensemble.ServerID(id+1)))
		}
		found := 0
		for _, e := range Elections(records) {
			found += len(e.records)
			d := e.Draw("a", rapid.Bool().Draw(t, "alone"))
			check(t, &e, d)
			if again := e.Draw("a", false); !strings.Contains(again.SVG, `aria-labelledby="a-title a-desc"`) {
				t.Errorf("no title: %.200s", again.SVG)
			}
		}
		if found != len(records) {
			t.Errorf("%d records of %d are in an election", found, len(records))
		}
	})
}

// TestClocksAreAligned: if the clock of a server is wrong by an hour, its record is still
// found to be of the same election, and is moved so that votes arrive after they are sent.
func TestClocksAreAligned(t *testing.T) {
	records := read(t, "testdata/five.json")
	right := Elections(records)[0]
	for i := range records {
		if records[i].Server == 2 {
			records[i].Began = records[i].Began.Add(-time.Hour)
		}
	}
	all := Elections(records)
	if len(all) != 1 {
		t.Fatalf("%d elections, want 1", len(all))
	}
	e := &all[0]
	if says := e.Clocks(); !strings.Contains(says, "They were aligned by the") || !strings.Contains(says, "server 2 by +36000") && !strings.Contains(says, "server 2 by +35999") {
		t.Error(says)
	}
	for i := range e.records {
		if off := e.began(i).Sub(right.began(i)).Abs(); off > 4*time.Millisecond {
			t.Errorf("server %d is off by %v", e.records[i].Server, off)
		}
	}
	for _, d := range e.deliveries(e.Began()) {
		if d.sent && d.heard && d.heardAt < d.sentAt-1 {
			t.Errorf("heard before it was sent: %s", d.describe())
		}
	}
}

// TestTimeWithoutTheLeadersRecord shows that, if the record of the leader is lost, a server that joins later does not change how
// long the election took.
func TestTimeWithoutTheLeadersRecord(t *testing.T) {
	records := slices.DeleteFunc(read(t, "testdata/five.json"), func(r elog.Election) bool { return r.State == leading })
	before := Elections(records)[0]
	late := records[0]
	late.Server, late.Began = 77, late.Began.Add(5*time.Second)
	after := Elections(append(records, late))
	if len(after) != 1 || len(after[0].Servers()) != len(records)+1 {
		t.Fatalf("%d elections", len(after))
	}
	if before.Line() != after[0].Line() {
		t.Errorf("%q has become %q", before.Line(), after[0].Line())
	}
}

// TestElectionsAreToldApart: the records of several elections of an ensemble are grouped by
// election; the record of a server that joins later is a group of its own.
func TestElectionsAreToldApart(t *testing.T) {
	var records []elog.Election
	for _, file := range []string{"three", "joined", "transferred"} {
		records = append(records, read(t, "testdata/"+file+".json")...)
	}
	slices.Reverse(records)
	var lines []string
	for _, e := range Elections(records) {
		lines = append(lines, fmt.Sprint(e.Servers(), " ", e.Line()))
		if found := Find(Elections(records), e.ID()); found == nil || found.ID() != e.ID() {
			t.Errorf("%s is not found", e.ID())
		}
		for _, id := range e.Servers() {
			if found := Find(Elections(records), e.IDFrom(id)); found == nil || found.ID() != e.ID() || !strings.HasPrefix(e.IDFrom(id), fmt.Sprintf("%d.", id)) {
				t.Errorf("%s is not found", e.IDFrom(id))
			}
		}
	}
	t.Log(strings.Join(lines, "\n"))
	if len(lines) != 3 {
		t.Errorf("%d elections:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for _, id := range []string{"", "x", "1.", "1.5", "99999999999999999999.1"} {
		if Find(Elections(records), id) != nil {
			t.Errorf("%q is found", id)
		}
	}
}

// TestHostileRecordsAreCheap: records that are as many and as long as the limits allow, and
// all alike, are brought together and drawn within seconds.
func TestHostileRecordsAreCheap(t *testing.T) {
	leader := ensemble.ServerID(1)
	var records []elog.Election
	for id := ensemble.ServerID(1); id <= 9; id++ {
		for k := range 2 * recordsMax {
			e := elog.Election{Server: id, Began: time.UnixMilli(1_700_000_000_000 + int64(k)), Leader: &leader, State: following, Epoch: 1, Phase: "serve", LookMS: 1}
			for n := range 512 {
				v := elog.Vote{Leader: ensemble.ServerID(n), Zxid: "0x1"}
				e.Votes = append(e.Votes, elog.Heard{AtMS: int64(n), From: id%9 + 1, State: looking, Vote: v})
				e.Changes = append(e.Changes, elog.Change{AtMS: int64(n), Vote: v})
				e.SentVotes = append(e.SentVotes, elog.Sent{AtMS: int64(n), To: slices.Repeat([]ensemble.ServerID{(id+7)%9 + 1}, 4), State: looking, Vote: v})
			}
			records = append(records, e)
		}
	}
	began := time.Now()
	all := Elections(records)
	for i := range all[:3] {
		check(t, &all[i], all[i].Draw("a", false))
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	} else {
		t.Log(len(all), took)
	}
}

// FuzzDraw: whatever another server prints as its record can be drawn.
func FuzzDraw(f *testing.F) {
	for _, name := range []string{"three", "joined", "transferred"} {
		text, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		records, err := elog.Decode(text)
		if err != nil {
			return
		}
		for _, e := range Elections(records) {
			d := e.Draw("a", true)
			if err := wellFormed(d.SVG); err != nil {
				t.Error(err)
			}
			if d.drawn+d.LeftOut != votes(&e) {
				t.Errorf("%d drawn, %d left out, of %d", d.drawn, d.LeftOut, votes(&e))
			}
			e.Outcome()
			if _, err := json.Marshal(d.Facts); err != nil {
				t.Error(err)
			}
		}
	})
}
