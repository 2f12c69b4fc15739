package admin

import (
	"encoding/json"
	"time"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/server"
	"bellwether/wire"
)

// electionJSON is an election as one server saw it, in a form for programs. Line and
// Story hold the same in a form for people.
type electionJSON struct {
	Server        ensemble.ServerID   `json:"server"`
	Began         time.Time           `json:"began"`
	Why           string              `json:"why"`
	Own           voteJSON            `json:"own"`
	Rounds        []wire.Epoch        `json:"rounds"`
	Votes         []heardJSON         `json:"votes"`
	WaitsMS       []int64             `json:"waits_ms"`
	Sent          int                 `json:"sent"`
	State         string              `json:"state,omitempty"`
	Leader        *ensemble.ServerID  `json:"leader,omitempty"` // nil: no leader was elected
	Supporters    []ensemble.ServerID `json:"supporters,omitempty"`
	Ending        string              `json:"ending"`
	Epoch         wire.Epoch          `json:"epoch"` // the epoch in which the server served; 0 if it did not serve
	Phase         string              `json:"phase"`
	LookMS        int64               `json:"look_ms"`
	DiscoverMS    int64               `json:"discover_ms"`
	SynchroniseMS int64               `json:"synchronise_ms"`
	ServeMS       int64               `json:"serve_ms"`
	Ended         string              `json:"ended,omitempty"`
	Line          string              `json:"line"`
	Story         string              `json:"story"`
}

type voteJSON struct {
	Leader ensemble.ServerID `json:"leader"`
	Zxid   string            `json:"zxid"`
	Epoch  wire.Epoch        `json:"epoch"`
}

type heardJSON struct {
	AtMS    int64             `json:"at_ms"`
	From    ensemble.ServerID `json:"from"`
	State   string            `json:"state"`
	Round   wire.Epoch        `json:"round"`
	Vote    voteJSON          `json:"vote"`
	Verdict string            `json:"verdict"`
}

func voteOf(v election.Vote) voteJSON { return voteJSON{v.Leader, v.Zxid.String(), v.PeerEpoch} }

// elog answers the word elog, which ZooKeeper does not have: the server's last elections
// as a JSON array, oldest first. It is empty on a standalone server.
func elog(_ *texts, s *server.Server) string {
	all := []electionJSON{}
	for _, e := range s.Elections() {
		all = append(all, electionOf(&e.Record, e.Began))
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err.Error() + "\n" // unreachable: values of these types can always be encoded
	}
	return string(b) + "\n"
}

func electionOf(r *election.Record, began time.Time) electionJSON {
	o := electionJSON{
		Server: r.Server, Began: began.UTC(), Why: r.Why, Own: voteOf(r.Own), Rounds: r.Rounds, Votes: []heardJSON{},
		WaitsMS: r.Waits, Sent: r.Sent, Ending: r.Decision.Ending.String(), Epoch: r.Epoch, Phase: r.Phase.String(),
		LookMS: r.PhaseMS[election.Search], DiscoverMS: r.PhaseMS[election.Discover],
		SynchroniseMS: r.PhaseMS[election.Synchronise], ServeMS: r.PhaseMS[election.Serve],
		Ended: r.Ended, Line: r.String(), Story: r.Explain(),
	}
	if r.Phase > election.Search {
		o.State, o.Leader, o.Supporters = r.Decision.State.String(), &r.Decision.Vote.Leader, r.Decision.Supporters
	}
	for _, v := range r.Votes {
		o.Votes = append(o.Votes, heardJSON{v.AtMS, v.From, v.State.String(), v.Round, voteOf(v.Vote), v.Verdict.String()})
	}
	return o
}
