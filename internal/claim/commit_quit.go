package claim

// refuse ends the part of who may not do what it has to. Others would wait for
// what stands of it in this session, so that goes first: the coordinator's znode,
// and a site's that has not voted. A vote is a promise, and stays.
func (c *commit) refuse(err error) {
	if c.refusal == nil {
		c.refusal = err
		c.tell("%s is refused: %v", c.who(), err)
	}
}

// quit takes away what stands, once: whoever may not do that either leaves it to
// the end of the session.
func (c *commit) quit() {
	var ops []Op
	if c.stands {
		ops = append(ops, Op{Kind: OpDelete, Path: c.chairPath(), Version: AnyVersion})
	}
	if c.present {
		ops = append(ops, Op{Kind: OpDelete, Path: c.ballotPath(c.cfg.Site)}) // as it was made
	}
	switch {
	case c.refusal == nil:
	case len(ops) == 0:
		c.over(c.refusal)
	default:
		c.ask(txQuit, ops...)
	}
}
