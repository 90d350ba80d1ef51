{{- define "posthorn.labels" -}}
app.kubernetes.io/name: posthorn
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "posthorn.selector" -}}
app.kubernetes.io/name: posthorn
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "posthorn.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "posthorn.environment" -}}
envFrom:
  - secretRef:
      name: {{ .secret }}
env:
  {{- range $name, $value := .root.Values.settings }}
  - name: {{ $name }}
    value: {{ $value | toString | quote }}
  {{- end }}
  - name: POSTHORN_DATA_DIR
    value: /tmp/posthorn
{{- end }}

{{- define "posthorn.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "posthorn.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* The kinds of worker pods by name, as YAML: "worker", and "worker-<region>" with the settings of `worker` that a region does not change. */}}
{{- define "posthorn.workers" -}}
{{- $workers := dict "worker" .Values.worker }}
{{- range $region, $settings := .Values.regions }}
{{- $_ := set $workers (printf "worker-%s" $region) (mergeOverwrite (deepCopy $.Values.worker) ($settings | default dict) (dict "region" $region)) }}
{{- end }}
{{- toYaml $workers }}
{{- end }}
