package admin

import (
	"context"
	"encoding/json"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/server"
	"bellwether/wire"
)

// transferWord is the word that makes a leader transfer leadership. ZooKeeper does not have
// it. Over the network it is answered only if the whitelist contains it by name; for a
// client on the same machine "*" is enough.
const transferWord = "hand"

// transferTimeout is how long the server waits for the transfer before it answers.
const transferTimeout = 2 * time.Second

// transferJSON is the answer to hand. Error is set if no server was named as the next
// leader, or if the named one does not lead.
type transferJSON struct {
	From   ensemble.ServerID `json:"from"`
	To     ensemble.ServerID `json:"to"`
	Epoch  wire.Epoch        `json:"epoch"`
	TookMS int64             `json:"took_ms"`
	Error  string            `json:"error,omitempty"`
}

// hand makes the server transfer leadership to the server to, or to the most suitable one
// (peerwire.NoServer), and returns the outcome as JSON.
func hand(s *server.Server, to ensemble.ServerID) string {
	ctx, cancel := context.WithTimeout(context.Background(), transferTimeout)
	defer cancel()
	h, err := s.TransferLeadership(ctx, to)
	o := transferJSON{From: h.From, To: h.To, Epoch: h.Epoch, TookMS: h.Took.Milliseconds()}
	if err != nil {
		o.Error = err.Error()
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err.Error() + "\n" // unreachable: values of this type can always be encoded
	}
	return string(b) + "\n"
}
