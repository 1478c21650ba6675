{% macro blendfusion__generate_database_name(custom_database_name=none, node=none) -%}
  {#- Views are kept in the session: an attached database cannot ask a model. -#}
  {%- if node is not none and node.resource_type == 'model' and node.config.materialized == 'view' -%}
    datafusion
  {%- else -%}
    {{ custom_database_name or target.database }}
  {%- endif -%}
{%- endmacro %}

{% macro blendfusion__create_table_as(temporary, relation, sql) -%}
  {%- if config.get('contract') and config.get('contract').enforced -%}
    {{ exceptions.raise_compiler_error("contracts are not supported: the types of a table are those of its query") }}
  {%- endif -%}
  create or replace table {{ relation }} as {{ sql }}
{%- endmacro %}

{% macro blendfusion__current_timestamp() -%} now() {%- endmacro %}

{% macro blendfusion__dateadd(datepart, interval, from_date_or_timestamp) -%}
  ({{ from_date_or_timestamp }} + ({{ interval }}) * interval '1 {{ datepart }}')
{%- endmacro %}

{% macro run_hooks_before(hooks) %}
  {{ run_hooks(hooks, inside_transaction=False) }}
  {{ run_hooks(hooks, inside_transaction=True) }}
{% endmacro %}

{% macro run_hooks_after(hooks) %}
  {{ run_hooks(hooks, inside_transaction=True) }}
  {{ run_hooks(hooks, inside_transaction=False) }}
{% endmacro %}

{% materialization table, adapter='blendfusion' %}
  {%- set table = this.incorporate(type='table') -%}
  {{ run_hooks_before(pre_hooks) }}
  {% call statement('main') -%} {{ create_table_as(False, table, sql) }} {%- endcall %}
  {% do adapter.renew_views() %}
  {{ run_hooks_after(post_hooks) }}
  {{ return({'relations': [table]}) }}
{% endmaterialization %}

{% materialization view, adapter='blendfusion' %}
  {%- set view = this.incorporate(type='view') -%}
  {{ run_hooks_before(pre_hooks) }}
  {% do adapter.keep_view(view, sql) %}
  {% call noop_statement('main', 'CREATE VIEW', 'CREATE VIEW') -%} {{ sql }} {%- endcall %}
  {{ run_hooks_after(post_hooks) }}
  {{ return({'relations': [view]}) }}
{% endmaterialization %}

{% materialization incremental, adapter='blendfusion' %}
  {%- set table = this.incorporate(type='table') -%}
  {%- set key = config.get('unique_key') -%}
  {%- set strategy = config.get('incremental_strategy') or ('merge' if key else 'append') -%}
  {%- set change = config.get('on_schema_change') or 'fail' -%}
  {%- if strategy not in ('append', 'merge') or (strategy == 'merge' and not key) -%}
    {{ exceptions.raise_compiler_error("incremental_strategy is 'append', or 'merge' with a unique_key, not '" ~ strategy ~ "'") }}
  {%- endif -%}
  {%- if change not in ('ignore', 'fail') -%}
    {{ exceptions.raise_compiler_error("on_schema_change '" ~ change ~ "' is not supported: dbt run --full-refresh makes the table anew") }}
  {%- endif -%}
  {{ run_hooks_before(pre_hooks) }}
  {% if load_cached_relation(this) is none or should_full_refresh() %}
    {% call statement('main') -%} {{ create_table_as(False, table, sql) }} {%- endcall %}
  {% else %}
    {% set rows = adapter.write_rows(table, sql, key if strategy == 'merge' else none) %}
    {% call noop_statement('main', 'INSERT ' ~ rows, 'INSERT', rows) -%} {{ sql }} {%- endcall %}
  {% endif %}
  {% do adapter.renew_views() %}
  {{ run_hooks_after(post_hooks) }}
  {{ return({'relations': [table]}) }}
{% endmaterialization %}

{% materialization seed, adapter='blendfusion' %}
  {%- set table = this.incorporate(type='table') -%}
  {%- set seed = load_agate_table() -%}
  {%- do store_result('agate_table', response='OK', agate_table=seed) -%}
  {{ run_hooks_before(pre_hooks) }}
  {% set rows = adapter.load_seed(table, seed, config.get('column_types') or {}) %}
  {% call noop_statement('main', 'INSERT ' ~ rows, 'INSERT', rows) -%}{%- endcall %}
  {% do adapter.renew_views() %}
  {{ run_hooks_after(post_hooks) }}
  {{ return({'relations': [table]}) }}
{% endmaterialization %}
