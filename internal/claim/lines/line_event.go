package lines

import "bellwether/wire"

// BidMissing reports that a server has answered, in Session, that the bid at Path does not exist. The driver steps it
// when a transaction of the caller that checks the bid has failed. A Line ignores the paths of other bids, and answers
// of other sessions.
type BidMissing struct {
	Path    string
	Session wire.SessionID
}

func (BidMissing) Event() {}
