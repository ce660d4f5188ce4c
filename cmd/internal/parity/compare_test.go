package main

import (
	"strings"
	"testing"
)

func TestOnlyPinsAndReceiptsAreNoDifference(t *testing.T) {
	const digest = "@sha256:5cba7bc9a0540f7cdc71f169f0d3dde5bd7cf903792a56d069f5382b7ff68286"
	const web = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":3,"image":"web:1"}}`
	for _, tc := range []struct{ name, want, got, difference string }{
		{"the same", web, web, ""},
		{"a pin", web, strings.Replace(web, "web:1", "web:1"+digest, 1), ""},
		{"a pin of another tag", web, strings.Replace(web, "web:1", "web:2"+digest, 1), ".spec.image: by Argo CD"},
		{"a cut pin", web, strings.Replace(web, "web:1", "web:1@sha256:5cba", 1), ".spec.image: by Argo CD"},
		{"a receipt", web, strings.Replace(web, `"name":"web"`, `"name":"web","annotations":{"syncgate.io/receipt":"x"}`, 1), ""},
		{"a receipt where null was", strings.Replace(web, `"name":"web"`, `"name":"web","annotations":null`, 1), strings.Replace(web, `"name":"web"`, `"name":"web","annotations":{"syncgate.io/receipt":"x"}`, 1), ""},
		{"another annotation", web, strings.Replace(web, `"name":"web"`, `"name":"web","annotations":{"syncgate.io/receipt":"x","a":"b"}`, 1), ".metadata.annotations only by the gate"},
		{"a receipt on a jobTemplate", `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"c"},"spec":{"jobTemplate":{"spec":{}}}}`,
			`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"c"},"spec":{"jobTemplate":{"metadata":{"annotations":{"syncgate.io/receipt":"x"}},"spec":{}}}}`, ""},
		{"an empty member", web, strings.Replace(web, `"replicas":3`, `"replicas":3,"strategy":{}`, 1), ".spec.strategy only by the gate"},
		{"a member less", web, strings.Replace(web, `"replicas":3,`, ``, 1), ".spec.replicas only by Argo CD"},
		{"a null", strings.Replace(web, `"replicas":3`, `"replicas":3,"x":null`, 1), web, ""},
		{"another number", web, strings.Replace(web, `"replicas":3`, `"replicas":4`, 1), ".spec.replicas: by Argo CD 3, by the gate 4"},
		{"a number in another notation", strings.Replace(web, `"replicas":3`, `"replicas":3.0`, 1), web, ""},
		{"large numbers that differ", strings.Replace(web, `"replicas":3`, `"replicas":9007199254740993`, 1), strings.Replace(web, `"replicas":3`, `"replicas":9007199254740992`, 1), ".spec.replicas"},
		{"a string for a number", web, strings.Replace(web, `"replicas":3`, `"replicas":"3"`, 1), ".spec.replicas"},
		{"another name", web, strings.Replace(web, `"name":"web"`, `"name":"other"`, 1), "0 times by Argo CD, 1 by the gate"},
		{"a list that is longer", strings.Replace(web, `"replicas":3`, `"replicas":[1]`, 1), strings.Replace(web, `"replicas":3`, `"replicas":[1,2]`, 1), ".spec.replicas"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want, err := decode([]byte(tc.want))
			if err != nil {
				t.Fatal(err)
			}
			got, err := decode([]byte(tc.got))
			if err != nil {
				t.Fatal(err)
			}
			d := difference([]map[string]any{want}, []map[string]any{got})
			if tc.difference == "" && d != "" || !strings.Contains(d, tc.difference) {
				t.Errorf("got %q, want %q", d, tc.difference)
			}
		})
	}
}
