package admin

import (
	"context"
	"encoding/json"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/server"
	"bellwether/wire"
)

// handWord is a word of ours that changes something: a leader passes its role
// on. Over the network it has to be in the whitelist by its name; "*" is enough
// for who is on the same machine.
const handWord = "hand"

// handMax is how long its answer is waited for.
const handMax = 2 * time.Second

// handedJSON is the answer. Error: nobody was named, or who was does not lead.
type handedJSON struct {
	From   ensemble.ServerID `json:"from"`
	To     ensemble.ServerID `json:"to"`
	Epoch  wire.Epoch        `json:"epoch"`
	TookMS int64             `json:"took_ms"`
	Error  string            `json:"error,omitempty"`
}

// hand has the server hand over, to another one or to the fittest
// (peerwire.NoServer), and says in JSON how that went.
func hand(s *server.Server, to ensemble.ServerID) string {
	ctx, cancel := context.WithTimeout(context.Background(), handMax)
	defer cancel()
	h, err := s.HandOver(ctx, to)
	o := handedJSON{From: h.From, To: h.To, Epoch: h.Epoch, TookMS: h.Took.Milliseconds()}
	if err != nil {
		o.Error = err.Error()
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err.Error() + "\n" // no value of this type fails
	}
	return string(b) + "\n"
}
