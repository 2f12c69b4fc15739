package elog

import (
	"time"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// Election is an election as one server saw it, in a form for programs. Line and Explanation
// hold the same in a form for people.
type Election struct {
	Server        ensemble.ServerID   `json:"server"`
	Began         time.Time           `json:"began"`
	Why           string              `json:"why"`
	Own           Vote                `json:"own"` // this server's vote before it heard any other
	Rounds        []wire.Epoch        `json:"rounds"`
	Votes         []Heard             `json:"votes"`
	Dropped       int                 `json:"dropped,omitempty"` // votes heard beyond those in Votes
	Changes       []Change            `json:"changes"`
	WaitsMS       []int64             `json:"waits_ms"`
	WaitsAtMS     []int64             `json:"waits_at_ms"` // when each of the waits began
	Sent          int                 `json:"sent"`
	SentVotes     []Sent              `json:"sent_votes"`
	SentDropped   int                 `json:"sent_dropped,omitempty"`
	State         string              `json:"state,omitempty"`
	Leader        *ensemble.ServerID  `json:"leader,omitempty"` // nil: no leader was elected
	Round         wire.Epoch          `json:"round,omitempty"`  // of the decision
	Supporters    []ensemble.ServerID `json:"supporters,omitempty"`
	Ending        string              `json:"ending"`
	Reason        string              `json:"reason,omitempty"` // why this leader and not the next best candidate
	Epoch         wire.Epoch          `json:"epoch"`            // the epoch in which the server served; 0 if it did not serve
	Phase         string              `json:"phase"`
	LookMS        int64               `json:"look_ms"`
	DiscoverMS    int64               `json:"discover_ms"`
	SynchroniseMS int64               `json:"synchronise_ms"`
	ServeMS       int64               `json:"serve_ms"`
	Ended         string              `json:"ended,omitempty"`
	Line          string              `json:"line"`
	Explanation   string              `json:"story"`
}

// Vote is a candidate and its history.
type Vote struct {
	Leader ensemble.ServerID `json:"leader"`
	Zxid   string            `json:"zxid"`
	Epoch  wire.Epoch        `json:"epoch"`
}

// Heard is a vote of another server, as it arrived.
type Heard struct {
	AtMS    int64             `json:"at_ms"` // since the election began, as all times of an election
	From    ensemble.ServerID `json:"from"`
	State   string            `json:"state"`
	Round   wire.Epoch        `json:"round"`
	Vote    Vote              `json:"vote"`
	Verdict string            `json:"verdict"`
}

// Change is a vote of this server, and the time from which it was the server's vote.
type Change struct {
	AtMS  int64      `json:"at_ms"`
	Round wire.Epoch `json:"round"`
	Vote  Vote       `json:"vote"`
	Heard int        `json:"heard"` // the number of votes that the server had heard before
}

// Sent is a vote that this server sent.
type Sent struct {
	AtMS  int64               `json:"at_ms"`
	To    []ensemble.ServerID `json:"to"`
	State string              `json:"state"`
	Round wire.Epoch          `json:"round"`
	Vote  Vote                `json:"vote"`
	Heard int                 `json:"heard"`
}

func voteOf(v election.Vote) Vote { return Vote{v.Leader, v.Zxid.String(), v.PeerEpoch} }

// From returns the record of an election that began at the given time.
func From(r *election.Record, began time.Time) Election {
	o := Election{
		Server: r.Server, Began: began.UTC(), Why: r.Why, Own: voteOf(r.Own), Rounds: r.Rounds,
		Votes: []Heard{}, Dropped: r.Dropped, Changes: []Change{}, WaitsMS: []int64{}, WaitsAtMS: []int64{},
		Sent: r.Sent, SentVotes: []Sent{}, SentDropped: r.SentDropped,
		Ending: r.Decision.Ending.String(), Epoch: r.Epoch, Phase: r.Phase.String(),
		LookMS: r.PhaseMS[election.Search], DiscoverMS: r.PhaseMS[election.Discover],
		SynchroniseMS: r.PhaseMS[election.Synchronise], ServeMS: r.PhaseMS[election.Serve],
		Ended: r.Ended, Line: r.String(), Explanation: r.Explain(),
	}
	if r.Phase > election.Search {
		d := &r.Decision
		o.State, o.Leader, o.Round, o.Supporters, o.Reason = d.State.String(), &d.Vote.Leader, d.Round, d.Supporters, r.Reason()
	}
	for _, v := range r.Votes {
		o.Votes = append(o.Votes, Heard{v.AtMS, v.From, v.State.String(), v.Round, voteOf(v.Vote), v.Verdict.String()})
	}
	for _, c := range r.Changes {
		o.Changes = append(o.Changes, Change{c.AtMS, c.Round, voteOf(c.Vote), c.Heard})
	}
	for _, w := range r.Waits {
		o.WaitsMS, o.WaitsAtMS = append(o.WaitsMS, w.MaxMS), append(o.WaitsAtMS, w.AtMS)
	}
	for _, s := range r.SentVotes {
		o.SentVotes = append(o.SentVotes, Sent{s.AtMS, s.To, s.State.String(), s.Round, voteOf(s.Vote), s.Heard})
	}
	return o
}
