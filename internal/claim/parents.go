package claim

// Parents creates missing parents of a recipe's znodes. Before that it makes sure that no other recipe uses
// the path of this one.
type Parents struct {
	Root    string // path of a recipe that has only persistent znodes as children; empty: it need not be checked
	Want    Kind   // the recipe at Root
	Checked bool   // the children of Root were checked, or need not be
}

// Create makes the next request of a: to list Root, if that has not been done, and after that to carry out
// ops, which create the parents. It calls refuse with the first error. If the server refuses the list, the
// check succeeds.
func (p *Parents) Create(a *Requester, refuse func(error), ops ...Op) {
	if p.Root != "" && !p.Checked {
		a.AskOne(func(list Result) {
			p.Checked = true
			if err := OtherRecipe(p.Root, p.Want, list.Names); err != nil {
				refuse(err)
			}
		}, List(p.Root))
		return
	}
	a.Ask(func(res []Result) {
		for _, r := range res {
			if r.Err != nil {
				refuse(r.Err)
				return
			}
		}
	}, ops...)
}
