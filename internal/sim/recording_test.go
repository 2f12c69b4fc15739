package sim

import (
	"reflect"
	"slices"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// recorded records a run in which server 1 is a compatible one.
func recorded(t *testing.T, steps ...Step) *Recording {
	t.Helper()
	r, err := Record(1, 1, steps)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// last returns the packets of the last step that the compatible server has sent to another
// server, or received from it, without pings.
func (r *Recording) last(peer ensemble.ServerID, sent bool) (all []*peerwire.QuorumPacket) {
	for _, p := range r.Exchanges {
		if p.Step == len(r.Steps)-1 && p.Peer == peer && p.Sent == sent && p.Packet != nil && p.Packet.Type != peerwire.PacketPing {
			all = append(all, p.Packet)
		}
	}
	return all
}

// TestRecordingsAreTheSame checks that a seed gives the same recording each time.
func TestRecordingsAreTheSame(t *testing.T) {
	for seed := range uint64(5) {
		var runs [2]*Recording
		for i := range runs {
			var err error
			if runs[i], err = Record(seed+1, 2, nil); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(runs[0], runs[1]) {
			t.Errorf("seed %d gives two recordings", seed+1)
		}
	}
}

// TestCompatibleLearnerAcknowledgesDiff checks that a compatible learner acknowledges the
// transactions of a DIFF after UPTODATE, as a learner of Apache ZooKeeper does.
func TestCompatibleLearnerAcknowledgesDiff(t *testing.T) {
	r := recorded(t, Step{StepStart, 1, 0}, Step{StepStart, 2, 0}, Step{StepStart, 3, 0}, Step{StepWrite, 2, 1},
		Step{StepKill, 1, 0}, Step{StepWrite, 3, 1}, Step{StepStart, 1, 0})
	leader := r.Steps[len(r.Steps)-1].Leader
	var proposed, acknowledged []wire.Zxid
	for _, p := range r.last(leader, false) {
		if p.Type == peerwire.PacketProposal {
			proposed = append(proposed, p.Zxid)
		}
	}
	for _, p := range r.last(leader, true) {
		if p.Type == peerwire.PacketAck && p.Zxid.Counter() > 0 {
			acknowledged = append(acknowledged, p.Zxid)
		}
	}
	if len(proposed) != 4 || !slices.Equal(proposed, acknowledged) {
		t.Errorf("%v were proposed, %v acknowledged", proposed, acknowledged)
	}
}

// TestCompatibleLeaderProposesNoMove checks that a compatible leader proposes nothing when a
// session moves to it.
func TestCompatibleLeaderProposesNoMove(t *testing.T) {
	r, err := Record(1, 2, []Step{{StepStart, 1, 0}, {StepStart, 3, 0}, {StepStart, 2, 0}, {StepCutWriting, 3, 0}})
	if err != nil {
		t.Fatal(err)
	}
	if l := r.Steps[3].Leader; l != 2 {
		t.Fatalf("server %d leads", l)
	}
	var types []wire.OpCode
	for _, p := range r.last(1, true) {
		if p.Type == peerwire.PacketProposal && p.Zxid.Epoch() == r.Steps[3].Epoch {
			txn, err := record.DecodeTxn(p.Data)
			if err != nil {
				t.Fatal(err)
			}
			types = append(types, txn.Type)
		}
	}
	if !slices.Equal(types, []wire.OpCode{wire.OpCloseSession}) {
		t.Errorf("it proposes %v", types)
	}
}
