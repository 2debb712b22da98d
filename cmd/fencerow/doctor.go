package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fencerow/fencerow/migrations"
)

func doctorCommand(o *options) *cobra.Command {
	var roles []string
	var format string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "find what takes the protection away, and exit with 1 on an error",
		Long: `doctor looks for what has taken the protection away or will, and tries the walls
with stale writes that it takes back. docs/doctor.md lists what it finds.`,
		Args: arguments(0, 0, "no arguments"),
		RunE: o.onDatabase("examining the database", func(c *cobra.Command, dsn string, _ []string) error {
			if err := checkFormat(format, formatText, formatJSON); err != nil {
				return err
			}
			findings, err := migrations.Doctor(c.Context(), dsn, roles...)
			if err != nil {
				return err
			}
			if format == formatJSON {
				err = printDoctorJSON(o.env.stdout, findings)
			} else {
				printDoctorText(o.env, findings)
			}
			if err == nil && !migrations.Healthy(findings) {
				err = errFindings
			}
			return err
		}),
	}
	c.Flags().StringArrayVar(&roles, "role", nil, "role that the application connects as; may be given several times")
	c.Flags().StringVar(&format, "format", formatText, "form of the output: text or json")
	return c
}

func printDoctorText(env *environment, findings []migrations.Finding) {
	count := map[string]int{}
	for _, f := range findings {
		count[f.Severity]++
		severity := f.Severity
		if env.colour && severity == migrations.SeverityError {
			severity = red + severity + reset
		}
		fmt.Fprintf(env.stdout, "%s %s: %s\n  problem:     %s\n  consequence: %s\n  remedy:      %s\n",
			severity, f.Code, f.Object, f.Problem, f.Consequence, forShell(f.Remedy))
	}
	fmt.Fprintf(env.stdout, "%d errors, %d warnings, %d infos\n",
		count[migrations.SeverityError], count[migrations.SeverityWarning], count[migrations.SeverityInfo])
}

// doctorFindingJSON is one finding in the output of doctor --format json. Its
// keys stay as they are.
type doctorFindingJSON struct {
	Severity    string `json:"severity"`
	Code        string `json:"code"`
	Object      string `json:"object"`
	Problem     string `json:"problem"`
	Consequence string `json:"consequence"`
	Remedy      string `json:"remedy"`
}

func printDoctorJSON(w io.Writer, findings []migrations.Finding) error {
	out := struct {
		Healthy  bool                `json:"healthy"`
		Findings []doctorFindingJSON `json:"findings"`
	}{migrations.Healthy(findings), []doctorFindingJSON{}}
	for _, f := range findings {
		out.Findings = append(out.Findings, doctorFindingJSON(f))
	}
	return printJSON(w, out)
}
