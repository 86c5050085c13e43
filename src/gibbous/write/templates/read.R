# Synthetic rows in R: factors with their levels and labels, days, missing values.
# In the folder of the release: source("read.R"); rows <- read_set(1)
read_set <- function(number = 1, folder = ".") {
  files <- list(
{% for one in files %}
    {{ one }}{{ "" if loop.last else "," }}
{% endfor %}
  )[[number]]
{% if csv %}
  read_one <- function(file) utils::read.csv(
    file.path(folder, file), colClasses = "character", na.strings = {{ quoted(schema.null) }},
    check.names = FALSE, encoding = "UTF-8", blank.lines.skip = FALSE
  )
{% else %}
  read_one <- function(file) as.data.frame(arrow::read_parquet(file.path(folder, file)))
{% endif %}
  rows <- do.call(rbind, lapply(files, read_one))
{% if renamed %}
  names(rows) <- {{ renamed }}
{% endif %}
{% for column, kind, levels, labels in columns %}
{% set place = "rows[[" ~ quoted(column.name) ~ "]]" %}
{% if levels %}
  {{ place }} <- factor(
    as.character({{ place }}),
    levels = {{ levels }},
    labels = {{ labels }},
    ordered = {{ "TRUE" if column.kind == "ordinal" else "FALSE" }}
  )
{% elif kind == "date" %}
  {{ place }} <- as.Date(as.character({{ place }}), format = {{ quoted(column.date_format if csv and column.date_format else "%Y-%m-%d") }})
{% elif kind == "boolean" %}
  {{ place }} <- as.logical({{ place }})
{% else %}
  {{ place }} <- as.numeric({{ place }})
{% endif %}
{% if column.label %}
  attr({{ place }}, "label") <- {{ quoted(column.label) }}
{% endif %}
{% endfor %}
  rows
}
