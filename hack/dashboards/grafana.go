// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// dashboard describes the content of a Grafana dashboard.
type dashboard struct {
	uid, title string
	// pools adds the dashboard variable $pool, which selects node pools.
	pools bool
	rows  []row
}

type row struct {
	title  string
	panels []panel
}

type panel struct {
	title string
	// kind is the panel's type; empty means a time series. unit is Grafana's name for the unit.
	kind, unit string
	queries    []query
}

type query struct{ legend, expr string }

const stat = "stat"

type object map[string]any

var datasource = object{"type": "prometheus", "uid": "${datasource}"}

// Sizes of panels. Grafana's grid is 24 columns wide, so that a row has three panels.
const width, height, perLine = 8, 8, 3

// grafana returns the dashboard in Grafana's JSON model.
func (d dashboard) grafana() object {
	variables := []object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}
	if d.pools {
		variables = append(variables, object{
			"name": "pool", "label": "Pool", "type": "query", "datasource": datasource,
			// The metrics of pods outside of all pools have an empty label "pool".
			"query": "label_values(tidekeeper_nodepool_nodes, pool)", "refresh": 2,
			"multi": true, "includeAll": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"},
		})
	}
	var panels []object
	id, y := 0, 0
	add := func(p object, x, w, h int) {
		id++
		p["id"], p["gridPos"] = id, object{"x": x, "y": y, "w": w, "h": h}
		panels = append(panels, p)
	}
	for _, r := range d.rows {
		add(object{"type": "row", "title": r.title, "collapsed": false, "panels": []object{}}, 0, width*perLine, 1)
		y++
		for i, p := range r.panels {
			if i > 0 && i%perLine == 0 {
				y += height
			}
			add(p.grafana(), i%perLine*width, width, height)
		}
		y += height
	}
	return object{
		"uid": d.uid, "title": d.title, "tags": []string{"tidekeeper"}, "schemaVersion": 39,
		"editable": true, "refresh": "30s", "time": object{"from": "now-3h", "to": "now"},
		"templating": object{"list": variables}, "panels": panels,
	}
}

func (p panel) grafana() object {
	var targets []object
	for i, q := range p.queries {
		target := object{"refId": string(rune('A' + i)), "datasource": datasource, "expr": q.expr, "legendFormat": q.legend}
		targets = append(targets, target)
	}
	result := object{
		"type": "timeseries", "title": p.title, "datasource": datasource, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
	}
	if p.kind != "" {
		result["type"] = p.kind
		result["options"] = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}}
	}
	return result
}
