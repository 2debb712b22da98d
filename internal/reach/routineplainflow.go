package reach

// Statements of PL/pgSQL that have others in them, or go through a query.

// branches reads IF.
func (p *plainReader) branches() {
	for more := true; more; {
		p.pos++
		p.expression("then")
		w := p.statements("elsif", "elseif", "else", "end")
		more = w == "elsif" || w == "elseif"
		if w == "else" {
			p.pos++
			p.statements("end")
		}
	}
	p.expect("end", "if", ";")
}

// cases reads the statement CASE.
func (p *plainReader) cases() {
	p.pos++
	p.expression("when")
	for {
		p.expression("then")
		w := p.statements("when", "else", "end")
		p.pos++
		if w == "when" {
			continue
		}
		if w == "else" {
			p.statements("end")
			p.pos++
		}
		p.expect("case", ";")
		return
	}
}

// loop reads what stands behind LOOP.
func (p *plainReader) loop() {
	p.statements("end")
	p.expect("end", "loop")
	if p.word(p.pos) != ";" {
		p.pos++ // the label
	}
	p.expect(";")
}

// loopOver reads FOR and FOREACH.
func (p *plainReader) loopOver() {
	isArray := p.word(p.pos) == "foreach"
	for more := true; more && !p.isLost; more = p.word(p.pos) == "," {
		p.pos++
		p.declared(p.token(p.pos).name())
		p.pos = p.path(p.pos)
	}
	if isArray {
		p.expression("loop")
		p.loop()
		return
	}
	p.expect("in")
	if p.word(p.pos) == "execute" {
		p.pos++
		p.executes("using", "loop")
		p.expression("loop")
	} else {
		start := p.pos
		p.expression("loop")
		if !p.isRange(start, p.pos-1) {
			p.query(start, p.pos-1)
		}
	}
	p.loop()
}

// isRange reports whether a .. b stands between two tokens.
func (p *plainReader) isRange(i, end int) bool {
	for ; i < end; i++ {
		if p.word(i) == "." && p.word(i+1) == "." {
			return true
		}
	}
	return false
}

// returns reads RETURN. A variable may be called query.
func (p *plainReader) returns() {
	p.pos++
	if p.word(p.pos) != "query" {
		p.expression(";")
		return
	}
	start := p.pos + 1
	switch next := p.token(start); {
	case next.is("execute"):
		p.pos += 2
		p.executes("using", ";")
		p.expression(";")
	case next.kind == wordToken || next.is("("):
		p.expression(";")
		p.query(start, p.pos-1)
	default:
		p.expression(";")
	}
}

// opens reads OPEN.
func (p *plainReader) opens() {
	p.pos = p.path(p.pos + 1)
	if w := p.word(p.pos); w == "(" || w == ";" {
		p.expression(";")
		return
	}
	if p.word(p.pos) == "no" {
		p.pos++
	}
	if p.word(p.pos) == "scroll" {
		p.pos++
	}
	p.expect("for")
	if p.word(p.pos) == "execute" {
		p.pos++
		p.executes("using", ";")
		p.expression(";")
		return
	}
	start := p.pos
	p.expression(";")
	p.query(start, p.pos-1)
}
