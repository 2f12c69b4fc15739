package shell

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const handoverLong = `Make the leader transfer leadership to another server: to the server ID, or to the one with the longest log.
The leader holds new writes, waits until everything is committed and the next leader has it, names that server to all
others, and follows it. Clients stay connected, and every write is answered. One of the servers of --server must be the
leader.

ZooKeeper's servers cannot take part, so a leader whose followers are all of that kind cannot transfer leadership. A
leader that is stopped by SIGTERM transfers leadership by itself. The command uses the four-letter word hand:
4lw.commands.whitelist must contain it by name, or * if the server is on the same machine.
The exit status is 0 if the named server leads now, 1 if not (the message says why, and who leads), 4 if no server was
reached.`

func newElectionHandover(base maker) *cobra.Command {
	a := base()
	c := &cobra.Command{
		Use:     "handover [ID]",
		Short:   "make another server the leader",
		Long:    handoverLong,
		Example: "  bellwether election handover --server a,b,c\n  bellwether election handover 2 --server a,b,c",
		Args:    argCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			to := int64(math.MinInt64) // any server
			if len(args) > 0 {
				id, err := strconv.ParseInt(args[0], 10, 64)
				if err != nil || id < 0 {
					return usagef("%q is not a server id: want a number of 0 or more", args[0])
				}
				to = id
			}
			return a.handover(cmd.Context(), to)
		},
	}
	a.serverFlags(c)
	a.outputFlag(c)
	return c
}

// handoverAnswer is the answer to the word hand.
type handoverAnswer struct {
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	Epoch  int64  `json:"epoch"`
	TookMS int64  `json:"took_ms"`
	Error  string `json:"error"`
}

// handoverMin is the shortest timeout for the answer.
const handoverMin = 5 * time.Second

// handover finds the leader and asks it to transfer leadership.
func (a *app) handover(ctx context.Context, to int64) error {
	leader, err := a.findLeader(ctx)
	if err != nil {
		return err
	}
	question := string(binary.BigEndian.AppendUint64([]byte("hand"), uint64(to)))
	text, err := a.word(ctx, leader, question, max(a.timeout, handoverMin))
	if err != nil {
		return fmt.Errorf("%s: %w", leader, err)
	}
	var h handoverAnswer
	switch err := json.Unmarshal([]byte(text), &h); {
	case err != nil && strings.TrimSpace(text) == "":
		return fmt.Errorf("%s does not support leadership transfer", leader)
	case err != nil:
		return fmt.Errorf("%s: %s", leader, strings.TrimSpace(text))
	case h.Error != "":
		return fmt.Errorf("%s: %s", leader, h.Error)
	}
	if !a.json() {
		text = fmt.Sprintf("server %d leads epoch %d; server %d transferred leadership to it in %d ms\n", h.To, h.Epoch, h.From, h.TookMS)
	}
	_, err = fmt.Fprint(a.out, text)
	return err
}

// findLeader asks the servers of --server for their roles and returns the leader.
func (a *app) findLeader(ctx context.Context) (address string, err error) {
	hosts, _, _ := strings.Cut(a.servers, "/")
	reached := false
	for h := range strings.SplitSeq(hosts, ",") {
		text, err := a.word(ctx, withPort(h), "srvr", a.timeout)
		if err != nil {
			fmt.Fprintf(a.err, "%s: %v\n", withPort(h), err)
			continue
		}
		reached = true
		if parseSrvr(text).Mode == "leader" {
			return withPort(h), nil
		}
	}
	if !reached {
		return "", &StatusError{Status: ExitNoConnection}
	}
	return "", errors.New("none of these servers is the leader: name more servers of the ensemble with --server")
}
