// Package docs has the pages of this folder that the command fencerow prints
// without a network. The pages of rules are in package rewrite/rules.
package docs

import (
	"embed"
	"fmt"
	"strings"
)

// errorPages has one file for each SQLSTATE of the wall, named by it.
//
//go:embed errors/*.md
var errorPages embed.FS

//go:embed doctor.md
var doctorPage string

// doctorURL is where doctorPage can be read as a whole.
const doctorURL = "https://github.com/fencerow/fencerow/blob/main/docs/doctor.md"

// WallError returns the page of an error of the wall, in Markdown, by its SQLSTATE,
// such as "FN001". The page is empty if there is no such error.
func WallError(code string) string {
	page, err := errorPages.ReadFile("errors/" + code + ".md")
	if err != nil {
		return ""
	}
	return string(page)
}

// meanings are the doctor's severities, as doctor.md says what they mean.
var meanings = strings.NewReplacer(
	"error", "error (the protection is gone, in part at least, or the application's role can take it away)",
	"warning", "warning (it is weaker than it could be, or about to go)",
	"info", "info (what there is to know)",
)

// Finding returns what doctor.md says of a finding of the doctor, in Markdown, by its
// code, such as "D203". The text is empty if there is no such finding.
func Finding(code string) string {
	_, rest, isThere := strings.Cut(doctorPage, "\n| "+code+" | ")
	if !isThere {
		return ""
	}
	row, _, _ := strings.Cut(rest, " |\n")
	cells := strings.SplitN(row, " | ", 3)
	return fmt.Sprintf("# %s %s\n\nA finding of the doctor, of severity %s: %s.\n\n"+
		"`fencerow doctor` names the object, and the statement that mends it. What the doctor does:\n%s\n",
		code, cells[0], meanings.Replace(cells[1]), cells[2], doctorURL)
}
