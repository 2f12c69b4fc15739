package claim

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"bellwether/wire"
)

// noticeMax is the largest size, in bytes, of LEADER data that is parsed.
const noticeMax = 64 << 10

// Notice is the content that a leader writes into its LEADER znode: a JSON object with the strings id, bid
// (the bid's name) and token (hex, with 0x).
type Notice struct {
	ID    string
	Bid   string
	Token wire.Zxid
}

type noticeJSON struct {
	ID    string `json:"id"`
	Bid   string `json:"bid"`
	Token string `json:"token"`
}

// Encode returns the data of the znode.
func (n Notice) Encode() []byte {
	b, err := json.Marshal(noticeJSON{n.ID, n.Bid, n.Token.String()})
	if err != nil {
		panic(fmt.Sprintf("claim: encoding %v: %v", n, err)) // three strings can always be encoded
	}
	return b
}

// DataError reports that a znode holds data of another recipe. The machine has left the znode unchanged.
type DataError struct {
	Path string
	Err  error // describes the problem with the data
}

func (e *DataError) Error() string {
	return fmt.Sprintf("%s holds data of another recipe: %v", e.Path, e.Err)
}

// Unwrap returns the problem with the data.
func (e *DataError) Unwrap() error { return e.Err }

// errForeign means that the data was not written by a leader of this recipe.
var errForeign = errors.New("not written by a leader of this recipe")

// ParseNotice parses the data of a LEADER znode. An error means that another program wrote it.
func ParseNotice(data []byte) (Notice, error) {
	if len(data) > noticeMax {
		return Notice{}, errForeign
	}
	var n noticeJSON
	if json.Unmarshal(data, &n) != nil || n.Bid == "" || strings.Contains(n.Bid, "/") {
		return Notice{}, errForeign
	}
	hex, ok := strings.CutPrefix(n.Token, "0x")
	token, err := strconv.ParseInt(hex, 16, 64)
	if !ok || err != nil || token <= 0 {
		return Notice{}, errForeign
	}
	return Notice{ID: n.ID, Bid: n.Bid, Token: wire.Zxid(token)}, nil
}

// NoticeOf returns the content of a LEADER znode. The result is empty if a leader of this recipe did not
// write the data, or if the znode is not ephemeral.
func NoticeOf(data []byte, stat wire.Stat) Notice {
	n, err := ParseNotice(data)
	if err != nil || stat.EphemeralOwner == 0 {
		return Notice{}
	}
	return n
}
