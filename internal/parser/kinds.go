package parser

import pg_query "github.com/pganalyze/pg_query_go/v5"

// The kinds of tokens that the code asks for. Key words are named as they are
// written, signs as in go/token, and the rest as in PostgreSQL's grammar.
const (
	NOTOKEN   = TokenKind(pg_query.Token_NUL)      // no token
	LPAREN    = TokenKind(pg_query.Token_ASCII_40) // (
	RPAREN    = TokenKind(pg_query.Token_ASCII_41) // )
	LBRACK    = TokenKind(pg_query.Token_ASCII_91) // [
	RBRACK    = TokenKind(pg_query.Token_ASCII_93) // ]
	COMMA     = TokenKind(pg_query.Token_ASCII_44) // ,
	PERIOD    = TokenKind(pg_query.Token_ASCII_46) // .
	SEMICOLON = TokenKind(pg_query.Token_ASCII_59) // ;
	EQUAL     = TokenKind(pg_query.Token_ASCII_61) // =

	IDENT        = TokenKind(pg_query.Token_IDENT)       // a name, in quotes or not
	UIDENT       = TokenKind(pg_query.Token_UIDENT)      // a name with escapes: U&"..."
	PARAM        = TokenKind(pg_query.Token_PARAM)       // a placeholder: $1
	SCONST       = TokenKind(pg_query.Token_SCONST)      // a string: '...', E'...' or $$...$$
	USCONST      = TokenKind(pg_query.Token_USCONST)     // a string with escapes: U&'...'
	ICONST       = TokenKind(pg_query.Token_ICONST)      // an integer
	FCONST       = TokenKind(pg_query.Token_FCONST)      // any other number
	BCONST       = TokenKind(pg_query.Token_BCONST)      // bits: B'...'
	XCONST       = TokenKind(pg_query.Token_XCONST)      // bits in hexadecimal: X'...'
	LINECOMMENT  = TokenKind(pg_query.Token_SQL_COMMENT) // -- ...
	BLOCKCOMMENT = TokenKind(pg_query.Token_C_COMMENT)   // /* ... */

	ALL       = TokenKind(pg_query.Token_ALL)
	ALTER     = TokenKind(pg_query.Token_ALTER)
	AND       = TokenKind(pg_query.Token_AND)
	AS        = TokenKind(pg_query.Token_AS)
	ATOMIC    = TokenKind(pg_query.Token_ATOMIC)
	BEGIN     = TokenKind(pg_query.Token_BEGIN_P)
	BETWEEN   = TokenKind(pg_query.Token_BETWEEN)
	CASE      = TokenKind(pg_query.Token_CASE)
	COMMENT   = TokenKind(pg_query.Token_COMMENT)
	CONFLICT  = TokenKind(pg_query.Token_CONFLICT)
	COPY      = TokenKind(pg_query.Token_COPY)
	CREATE    = TokenKind(pg_query.Token_CREATE)
	DEFAULT   = TokenKind(pg_query.Token_DEFAULT)
	DELETE    = TokenKind(pg_query.Token_DELETE_P)
	DISTINCT  = TokenKind(pg_query.Token_DISTINCT)
	DO        = TokenKind(pg_query.Token_DO)
	DROP      = TokenKind(pg_query.Token_DROP)
	ELSE      = TokenKind(pg_query.Token_ELSE)
	END       = TokenKind(pg_query.Token_END_P)
	EXCEPT    = TokenKind(pg_query.Token_EXCEPT)
	EXECUTE   = TokenKind(pg_query.Token_EXECUTE)
	EXPLAIN   = TokenKind(pg_query.Token_EXPLAIN)
	FETCH     = TokenKind(pg_query.Token_FETCH)
	FOR       = TokenKind(pg_query.Token_FOR)
	FROM      = TokenKind(pg_query.Token_FROM)
	GRANT     = TokenKind(pg_query.Token_GRANT)
	GROUP     = TokenKind(pg_query.Token_GROUP_P)
	HAVING    = TokenKind(pg_query.Token_HAVING)
	INSERT    = TokenKind(pg_query.Token_INSERT)
	INTERSECT = TokenKind(pg_query.Token_INTERSECT)
	INTO      = TokenKind(pg_query.Token_INTO)
	JOIN      = TokenKind(pg_query.Token_JOIN)
	LIMIT     = TokenKind(pg_query.Token_LIMIT)
	MATCHED   = TokenKind(pg_query.Token_MATCHED)
	MERGE     = TokenKind(pg_query.Token_MERGE)
	NOT       = TokenKind(pg_query.Token_NOT)
	OFFSET    = TokenKind(pg_query.Token_OFFSET)
	ON        = TokenKind(pg_query.Token_ON)
	OR        = TokenKind(pg_query.Token_OR)
	ORDER     = TokenKind(pg_query.Token_ORDER)
	RETURNING = TokenKind(pg_query.Token_RETURNING)
	REVOKE    = TokenKind(pg_query.Token_REVOKE)
	SELECT    = TokenKind(pg_query.Token_SELECT)
	SET       = TokenKind(pg_query.Token_SET)
	TABLE     = TokenKind(pg_query.Token_TABLE)
	TEMP      = TokenKind(pg_query.Token_TEMP)
	TEMPORARY = TokenKind(pg_query.Token_TEMPORARY)
	THEN      = TokenKind(pg_query.Token_THEN)
	TRUNCATE  = TokenKind(pg_query.Token_TRUNCATE)
	UNION     = TokenKind(pg_query.Token_UNION)
	UPDATE    = TokenKind(pg_query.Token_UPDATE)
	VALUES    = TokenKind(pg_query.Token_VALUES)
	WHEN      = TokenKind(pg_query.Token_WHEN)
	WHERE     = TokenKind(pg_query.Token_WHERE)
	WINDOW    = TokenKind(pg_query.Token_WINDOW)
	WITH      = TokenKind(pg_query.Token_WITH)
	WITHIN    = TokenKind(pg_query.Token_WITHIN)
)
