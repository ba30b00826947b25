// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/view"
)

// headlineItem is a part of the overview page's headline: a problem with its severity, and a link
// to its details.
type headlineItem struct {
	Is         view.Severity
	Text, Href string
}

// mostNamed is the maximum number of pools that the headline names; it only counts the other pools.
const mostNamed = 2

// addHeadline adds the headline of the overview page, a line that summarizes the problems that need
// attention.
func (d *overview) addHeadline(of links) {
	add := func(is view.Severity, href, format string, values ...any) {
		d.Headline = append(d.Headline, headlineItem{is, fmt.Sprintf(format, values...), href})
	}
	if d.Stopped > 0 {
		add(view.Bad, "#h-trouble", "%s stopped", plural(d.Stopped, "restart"))
	}
	if d.Failing > 0 {
		add(view.Bad, "#h-trouble", "%s failed", plural(d.Failing, "restart"))
	}
	if d.NotMaintained > 0 {
		add(view.Bad, "#h-maint", "maintenance of %s failed", plural(d.NotMaintained, "node"))
	}
	if d.Missed != "" {
		add(view.Bad, of.page("/restarts#unserved"), "%s will be missed", d.Missed)
	}
	if d.Pending > 0 {
		href := "#h-pools"
		if len(d.PendingIn) == 1 {
			href = d.PendingIn[0].Href
		}
		add(view.Warning, href, "%s pending", plural(d.Pending, "pod"))
	}
	if d.NotReady > 0 {
		add(view.Warning, of.page("/pods"), "%s of the last hour not ready", plural(d.NotReady, "pod"))
	}
	var fragile []string
	for i := range d.Pools {
		if row := &d.Pools[i]; row.LossIs == view.Bad {
			fragile = append(fragile, row.Name)
		}
	}
	switch n := len(fragile); {
	case n == 1:
		add(view.Bad, of.page("/capacity#losses"), "%s does not survive its worst node", fragile[0])
	case n > mostNamed:
		add(view.Bad, of.page("/capacity#losses"), "%s and %d more pools do not survive their worst node", strings.Join(fragile[:mostNamed], ", "), n-mostNamed)
	case n > 1:
		add(view.Bad, of.page("/capacity#losses"), "%s do not survive their worst node", strings.Join(fragile, " and "))
	}
	unknown := d.NoPools + d.NoRoom + d.NoPods + d.NoHerd + d.NoMaintenances + d.NoManager + d.OldForecast + d.Without
	d.Calm = len(d.Headline) == 0 && unknown == "" && !d.Partly && !d.NoForecast && len(d.Problems) == 0 && d.Filter == ""
}
